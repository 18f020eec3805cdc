"""What the core asks of the outside, as small as it can be. Each port has one contract suite in tests/contract."""

from commonplace.ports.accounts import *
from commonplace.ports.disks import *
from commonplace.ports.figures import *
from commonplace.ports.intake import *
from commonplace.ports.keeping import *
from commonplace.ports.members import *
from commonplace.ports.outside import *
from commonplace.ports.people import *
from commonplace.ports.queue import *
from commonplace.ports.store import *
