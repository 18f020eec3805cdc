"""Frozen values that travel between interfaces, core, store and adapters."""

from commonplace.model.crawls import *
from commonplace.model.disks import *
from commonplace.model.events import *
from commonplace.model.folders import *
from commonplace.model.ids import *
from commonplace.model.items import *
from commonplace.model.memory import *
from commonplace.model.oauth import *
from commonplace.model.people import *
from commonplace.model.saved import *
from commonplace.model.search_results import *
from commonplace.model.source_checks import *
from commonplace.model.source_content import *
from commonplace.model.undo import *
