"""English cues that a sentence of notes is worth remembering, and what kind of memory it makes.

A cue counts at the start of a clause or with its subject; "how to" or "approved" anywhere does not.
Rules, not statistics: the same text always gives the same answer, with a reason.
"""

import re
from dataclasses import dataclass

from commonplace.model import EntityType as Kind


@dataclass(frozen=True, slots=True)
class Cue:
    kind: str
    confidence: float
    reason: str
    patterns: tuple[re.Pattern[str], ...]

    def matches(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self.patterns)


def _any(phrases: str) -> str:
    """Join alternatives, separated by two spaces or a line break."""
    return "(?:" + "|".join(re.split(r"\s{2,}", phrases.strip())) + ")"


_CLAUSE = r"(?:\A|(?<=[,;:(] )|(?<=[-–—>] )|(?<=\band )|(?<=\bbut )|(?<=\bso ))"
_WHO = r"(?:we|they|you|everyone|everybody|all of us|somebody|someone)"
_GROUP = r"(?:the|our|my|all) (?:[\w'’-]++ ){0,3}?[\w'’-]++"
_NAME = (
    r"(?-i:(?!(?:We|They|You|He|She|It|This|That|These|Those|There|The|What|Who|Which|No|Not|If|But|And|So|"
    r"When|Need|Plan|Next)\b)@?[A-Z][\w-]*+(?: (?:[A-Z][\w-]*+|and [A-Z][\w-]*+|\([^()]{1,30}\)))?)"
)
_ONE = rf"(?<![\w-])(?:{_NAME}|i|someone|somebody)"
_ANY = rf"(?<![\w-])(?:{_WHO}|{_GROUP}|{_NAME}|i)"
_DECIDED = _any("""
    decided  agreed  voted  chose  picked  opted  resolved  settled  approved  accepted  rejected
    adopted  concluded  determined  dropped  signed off
""")
_OBJECT = (
    r"(?=,? (?:to|on|that|with|not|against|for|the|a|an|and|by|as|it|us|(?-i:[A-Z`\d]))|[.;,]|\Z)"
)
_DO = _any("""
    add  apply  ask  book  build  bump  call  check  clean  click  close  configure  copy  count
    create  cut  delete  deploy  disable  document  draft  drop  enable  enter  export  fill  find
    fix  go  hold  import  install  investigate  keep  label  leave  make  measure  merge  migrate
    mix  move  open  order  pour  prepare  press  publish  pull  push  put  read  release  remove
    rename  replace  restart  review  run  save  schedule  select  send  set  start  stop  store
    submit  switch  tag  take  test  turn  type  update  upgrade  use  verify  wait  wear  write
""")
_STATE = (
    r"(?!(?:(?:\w{1,30}ly|always|never) )?"
    r"(?:be|have|become|seem|know|like|love|need|want|remain|stay)\b)"
)
_MUST = rf"(?:needs?|have|has|must still) (?:to )?(?:be \w{{1,30}}ed\b|{_STATE}(?<=to )\w+)"
_PLAN = (
    r"(?:plan|plans|planning|aim|aims|aiming|intend|intends|hope|hopes|hoping) (?:to|for|on|is)\b"
)
_PROPOSE = r"(?:propos|suggest|recommend)(?:es|ed|ing|s|e)? \w+"
_WHEN = _any(r"""
    (?:by|in|from|until|over) (?:early |late |the )?(?:january|february|march|april|may|june
    july|august|september|october|november|december|spring|summer|autumn|fall|winter|week \d|q[1-4])
""")
_UNIT = _any(r"""
    %  percent  degrees?  seconds?  minutes?  hours?  days?  weeks?  months?  years?  [kmcµ]?m
    k?g  lit(?:er|re)s?  met(?:er|re)s?  miles?  volts?  watts?  euros?  dollars?  [kmg]?bytes?
    [kmgt]b  ms  people  times
""")
_TALK = r"(?!(?:i|you|he|she|my|your|his|her|it|this|that|every(?:body|one)|some(?:body|one))\b)"


def _cue(kind: str, confidence: float, reason: str, *patterns: str) -> Cue:
    return Cue(
        kind, confidence, reason, tuple(re.compile(each, re.IGNORECASE) for each in patterns)
    )


_CUES = (
    _cue(
        Kind.DECISION,
        0.85,
        "states a decision",
        rf"{_ANY}(?:['’]ve| have| has| all| both| finally| would| then){{0,2}} "
        rf"{_DECIDED}(?: \w{{1,30}}ly)?{_OBJECT}",
        rf"{_CLAUSE}(?:also |finally |then |unanimously ){{0,2}}{_DECIDED} "
        r"(?:to|on|that|with|not|against|for|the|a|we)\b",
        rf"\b(?:was|were|been) (?:\w{{1,30}}ly )?{_DECIDED}\b",
        r"\A(?:the )?(?:final )?(?:verdict|conclusion|decision|outcome)\b[^:.]{0,60}"
        r"(?:: | to | was )",
        rf"{_CLAUSE}(?:there is |the |general |rough ){{0,2}}(?:agreement|consensus) "
        r"(?:that|to|on|is|was|we)\b",
    ),
    _cue(
        Kind.DECISION,
        0.72,
        "chooses between options",
        r"\b(?:we|i)(?:['’](?:ll|re|d)| will| are)? (?:go|going|stick|sticking|stay|keeping) "
        r"(?:with|the)\b",
        rf"{_ANY} (?:chose|picked|prefer) \w+",
        r"\bwe(?:['’]ll| will)? \w+ .{2,80}? (?:instead of|rather than)\b",
        rf"{_CLAUSE}(?:from (?:now|\w+) on)\b",
        r"\b(?:no one|everyone|everybody|nobody) (?:was in favou?r|objects?|objected)\b",
        r"\b(?:(?:is|are|was|were) (?:\w+ )?|\A|, )(?:ok(?:ay)?|fine|happy|comfortable) with\b",
        rf"{_CLAUSE}no (?:\w+ ){{0,2}}(?:objections?|objects?)\b",
    ),
    _cue(
        Kind.DECISION,
        0.6,
        "proposes what to do next",
        rf"{_CLAUSE}(?:let us|let['’]?s) (?!me\b|see\b|meet\b|hope\b|say\b|keep\b)\w+",
    ),
    _cue(
        Kind.TASK,
        0.85,
        "is marked as a to-do",
        rf"{_CLAUSE}(?:todo|fixme|to-do|action items?)\b",
        rf"{_CLAUSE}(?:please )?(?:remember|don['’]t forget) to\b",
        rf"{_CLAUSE}follow[- ]up (?:on|with)\b",
    ),
    _cue(
        Kind.TASK,
        0.7,
        "assigns an action",
        rf"{_ONE}(?:['’]ll| will| is going to| should| needs to| has to)"
        rf" (?:also |then |please )?{_STATE}[a-z]{{2,30}}\b"
        r"(?![^,]{0,80}?\b(?:when|whenever|if|unless)\b)",
        rf"{_ONE} (?:volunteered|promised|offered|is|agreed) to \w+",
        r"\A(?!(?:according|due|thanks|proposal|request|time|similar|back|defer|nothing)\b)"
        rf"{_NAME} to (?!(?:be|the|a|an)\b)(?-i:[a-z]+)",
        rf"{_ONE} (?:is |are )?working on\b",
    ),
    _cue(
        Kind.TASK,
        0.66,
        "makes a request",
        rf"{_CLAUSE}please,? \w+",
        r"\basked [A-Z]\w+ (?:to|if|for)\b",
        rf"{_CLAUSE}(?:the )?(?:next steps?|ask) (?:is|are)\b",
    ),
    _cue(
        Kind.TASK,
        0.62,
        "names open work",
        rf"{_ANY} (?:(?:still|also) )?{_MUST}",
        rf"{_CLAUSE}{_MUST}",
        r"\bneeds? to be \w{1,30}ed\b",
        rf"{_CLAUSE}(?:still )?needs? (?:people|someone|somebody|help|volunteers)\b",
        rf"{_CLAUSE}(?:will|to) (?:also |then )?{_STATE}{_DO}\b",
    ),
    _cue(
        Kind.PLAN,
        0.72,
        "states a plan",
        rf"{_ANY}(?:['’]re| are| is|['’]m| am| also)? {_PLAN}",
        rf"{_CLAUSE}{_PLAN}",
        r"\b(?:planned|scheduled|slated|targeted) (?:for|to|on|in)\b",
        r"\b(?:the|our|current|training) (?:\w+ )?(?:plan|goal|strategy|roadmap)"
        r"(?: for [^,:]{1,60})?(?: is|:) ",
        rf"\A(?=.*\b(?:we|i|will|want|plan|going)\b)(?>.*?\b{_WHEN}\b)(?>.*?\b{_WHEN}\b)",
        r"\Afirst .{3,80}(?:, | and )then\b",
    ),
    _cue(
        Kind.PLAN,
        0.6,
        "announces an action",
        rf"{_WHO}(?:['’]ll| will| are going to|['’]re going to) \w+",
        r"(?<!that )\bwill (?:likely )?be \w{1,30}(?:ed|ing|nt)\b",
    ),
    _cue(
        Kind.PROCEDURE,
        0.74,
        "gives instructions",
        r"\A(?:the )?(?:steps|instructions|procedure|recipe) (?:for|to|of)\b[^:.]{0,80}: ",
        r"\Ahow to \w[^:.]{0,80}: ",
        rf"\A(?:if|when|once|(?:in order )?to)\b[^,]{{3,80}}, "
        rf"(?:first |please |then |you )?{_DO}\b",
        r"\A(?:in order )?to [^,]{3,80}, (?!i\b|we\b|it\b|the\b)\w+ [^,]++,[^,]++,",
    ),
    _cue(
        Kind.PATTERN,
        0.72,
        "states a rule",
        rf"{_CLAUSE}(?:please )?(?:always|never|avoid \w+ing|make sure|be sure to|as a rule)\b",
        rf"{_CLAUSE}(?:please )?(?:do not|don['’]t) "
        r"(?!forget|know|think|worry|mind|care|see|get me|need|want|have|like|believe)\w+",
        r"\bmust not\b|\bmustn['’]t\b|\bwe should not\b",
        rf"\A{_DO}\b.+\b(?:until|unless|before|after|when|while|only|away from|at least|at most)\b",
    ),
    _cue(
        Kind.CLAIM,
        0.74,
        "reports a finding",
        r"\b(?:it )?turn(?:s|ed) out\b",
        r"\b(?:found|discovered|learn(?:ed|t)|noticed|confirmed) (?:that|the|a)\b",
        r"\b(?:we|i) (?:found|discovered|learn(?:ed|t)|noticed|measured|observed|verified)\b",
        r"\b(?:benchmarks?|tests?|logs?|results?|data|measurements?) "
        r"(?:show|showed|say|said|suggest)s?\b",
    ),
    _cue(
        Kind.EPISODE,
        0.74,
        "describes a problem or its fix",
        r"\b(?:root cause|gotcha|workaround|outage|regression|post-?mortem)\b",
        rf"{_ANY}(?: \w{{1,30}}ed)? (?:broke|crashe[sd]|failed|fails|stalled|hung|hangs|"
        r"timed out|leak(?:s|ed)|deadlock(?:s|ed))\b",
        r"\b(?:was|were|got) (?:broken|fixed|corrupted|lost)\b",
        r"\b(?:we|i) (?:fixed|solved|reverted|rolled back|worked around)\b|\bthe fix (?:is|was)\b",
        r"\Alessons? (?:from|of|learn(?:ed|t))\b",
    ),
    _cue(
        Kind.IDEA,
        0.66,
        "suggests an option",
        rf"{_CLAUSE}(?:what if|what about|how about|how would it be|maybe|perhaps|possibly|"
        r"alternatively|could we|should we|might it)\b",
        rf"{_ANY} {_PROPOSE}",
        rf"{_CLAUSE}{_PROPOSE}",
        rf"{_CLAUSE}(?:one |an?other )?(?:option|possibility|alternative|idea|suggestion|way) "
        r"(?:is|was|to|would|might|could)\b",
        r"(?<!that )\b(?:we|one|somebody) (?:could|might|should)(?: also)? \w+",
        r"\bcould open\b|\bworth (?:trying|exploring|a try|considering|it)\b",
        r"\bit (?:might|could|would) be \w+ to\b",
        r"(?<!that )\bwould be (?:a )?(?:nice|good|great|fun|useful|better)(?: \w+)? (?:to|if)\b",
        r"(?<!that )\bwould make sense\b",
    ),
    _cue(
        Kind.EPISODE,
        0.5,
        "explains an event",
        rf"\A{_TALK}(?!we \w+ed a lot)(?>(?:[^,;]+? )??(?:[a-z]{{1,30}}ed|went|lost|fell|came|died|"
        r"left|shut|got|ran out)\b).*?[ ,](?:because|since|due to|as (?:the|a|an|it|there))\b",
    ),
    _cue(
        Kind.CLAIM,
        0.56,
        "states a fact with a figure",
        rf"\A{_TALK}(?!we\b)(?=.*\d).*\b"
        + _any("""
            is  are  was  were  has  have  had  takes?  took  needs?  requires?  supports?  costs?
            uses?  runs?  ends?  starts?  lasts?  returns?  holds?  allows?  grew  fell  rose
            released  expires?  reached  goes  reaches
        """)
        + r"\b",
        rf"\A{_TALK}(?=(?:\S+\s+){{5}}).*?\d\s?{_UNIT}(?!\w)",
    ),
    _cue(
        Kind.CLAIM,
        0.52,
        "states a property",
        rf"{_CLAUSE}(?:(?:the|one|an?|only|main|biggest|current) ){{1,3}}"
        r"(?:issue|problem|challenge|concern|advantage|benefit|downside|risk|goal|reason|point)s? "
        r"(?:is|are|was)\b",
        rf"{_CLAUSE}(?:problems?|issues?|trouble) with\b|\b(?:prefers?|believes?|finds)\b",
        r"(?<=\w )(?:is|are|does|do|has|have|can|would|will)(?: not|n['’]t) \w+",
        r"\b(?:cannot|can['’]t|no longer|hard to|difficult to|depends on|requires|opposed to|"
        r"impossible|must|only (?:works|supports|accepts|runs|contains))\b",
        r"\bis (?:deprecated|required|supported|safe|unsafe|idempotent|limited|owned|preferred|"
        r"important|unlikely)\b",
    ),
    _cue(
        Kind.CLAIM,
        0.5,
        "reports a change",
        r"\b(?:released|landed|merged|updated|deleted|removed|renamed|migrated|grown|shipped|"
        r"enabled|went out|is out|is active|is open|did (?!not)\w+|created|improved|"
        r"integrated|implemented)\b",
    ),
    _cue(
        Kind.CLAIM,
        0.48,
        "compares two things",
        rf"\A{_TALK}(?!(?:we|my)\b)(?!.*\b(?:was|were|had|[a-z]{{1,30}}ed)\b)(?:\S+ ){{2,8}}?"
        r"(?:(?:more|less|fewer) (?:\S+ ){1,3}?|(?:better|worse|[a-z]{3,30}er) )than \w",
        r"\b(?:twice|half) as (?:much|many)\b",
    ),
)
CUES = tuple(sorted(_CUES, key=lambda cue: -cue.confidence))  # the first match decides

_LABELLED = {
    Kind.DECISION: "decision  decided  agreed  resolution  outcome",
    Kind.TASK: "todo  to do  to-do  action  action item  task  next step  follow-up  follow up",
    Kind.PLAN: "plan  roadmap  milestone  strategy",
    Kind.IDEA: "idea  proposal  suggestion  brainstorm  option",
    Kind.CLAIM: """
        fact  finding  result  observation  learned  learning  lesson  lessons learned  insight
        constraint  note  important
    """,
    Kind.PROCEDURE: "procedure  step  runbook  how to  howto  instruction  setup  workflow  recipe",
    Kind.PATTERN: "rule  guideline  best practice  tip  convention",
    Kind.EPISODE: "bug  incident  root cause  gotcha  warning  problem  issue  fix  caveat",
}
# `Decision: ...`, or the heading above a list; also in the plural.
LABELS = {
    name: kind
    for kind, labels in _LABELLED.items()
    for label in re.split(r"\s{2,}", labels.strip())
    for name in (label, f"{label}s")
}
# Labels that say little: people put them before anything.
_MILD = "note  important  result  outcome  setup  option  problem  issue  fix  workflow"
MILD = {name for label in _MILD.split("  ") for name in (label, f"{label}s")}

# Who was there, and links: nothing to remember.
LISTED = re.compile(
    r"(?:present|attend(?:ees|ance)|participants|absent|apologies|regrets|links|upcoming|invited|"
    r"observers)\b",
    re.IGNORECASE,
)
# How the meeting itself went.
HOUSEKEEPING = re.compile(
    _any(r"""
        \bno (?:new |further |other )?(?:updates?|discussion|announcements|news)\b
        \b(?:on|from|off|the|tsc[-_ ]) ?(?:tsc[-_ ])?agenda\b
        \bagenda (?:item|tag)\b  \bFYI\b  \bnothing (?:to|new|on)\b
        \bthank(?:s| you)\b  \bwelcome\b  \bshout[- ]out\b
        \A(?:\w+ ){0,3}(?:discussed|covered) last\b  \bskip(?:ped)?\b.{0,20}(?:week|time)
    """),
    re.IGNORECASE,
)
# A sentence that says nothing without the one before.
VAGUE = re.compile(
    r"(?:it|this|that|these|those|they|he|she|them|its|their|such|there|(?:the )?second one|same)\b"
    r"(?!(?:['’]s| is| was| has been) (?:not )?(?:decided|agreed|resolved|possible|important|clear)"
    r"| turn(?:s|ed) out| (?:might|could|would) be)"
    r"|.{0,80}\b(?:do|about|of|to|with|remove|discuss|revisit|land|see|using|around|like) "
    r"(?:it|this|that|them|these|those)\W{0,3}\Z",
    re.IGNORECASE,
)
# `Alice, ...`, `Bob - ...`: who said it.
SAID_BY = re.compile(
    r"(?:(?:and|so|well|also|ok|yes|yeah),? ){0,2}(?-i:@?[A-Z][\w'’-]*+(?: [A-Z][\w-]*+)?"
    r"(?: \([^()]{1,30}\))?) ?(?:,|:|-|–|—|->) ++(?=\S)",
    re.IGNORECASE,
)

# A question that asks for an action, not for an answer.
REQUEST = re.compile(
    r"\A(?:[A-Z][\w'-]+, )?(?:(?i:can|could|would|will) "
    r"(?:(?i:you|someone|somebody|anyone|anybody|one of you)|(?!We\b|I\b)[A-Z][\w'-]+)(?: please)? "
    r"(?!(?:be|have|know|see|hear|remember|repeat|understand|follow|believe|imagine|tell me)\b)\w+"
    r"|(?i:(?!.*\b(?:repeat|say that)\b).*\bplease\b))"
)
REASON = re.compile(
    r"\b(?:because|since|so that|due to|therefore|in order to|otherwise|that way|the reason)\b",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|might|i think|i guess|not sure|unclear|seems?|"
    r"i (?:don['’]t|do not|can imagine|like|mean)|not saying|a bit|sort of|well)\b",
    re.IGNORECASE,
)
# Talk, not facts.
OPINION = re.compile(
    r"\b(?:i|me|my|agrees?|makes? sense|good idea|sounds|that['’]s|want to|"
    r"don['’]t (?:think|see|know))\b",
    re.IGNORECASE,
)
# It may mean something in the sentence before.
REFERS = re.compile(
    r"\b(?:It\b|(?i:this|these|those|they|them|his|her|their|its)\b|"
    r"it\b(?! (?:is|was) \w{1,20} that))"
)
UNDECIDED = re.compile(
    r"(?:\b(?:not|never|yet to|still to|to be|before (?:we|it is)|if (?:we|it is|they))|n['’]t) "
    r"(?:yet |be |been |have |really ){0,4}(?:decid|agree|settl|chos|choose|pick)\w*"
    r"|\b(?:undecided|no (?:decision|agreement|consensus)|should we|whether (?:we|to)|tbd|"
    r"see if there is)\b",
    re.IGNORECASE,
)
CONTINUES = re.compile(
    r"(?:because|since|this|that|these|those|it|otherwise|the reason|so|therefore|which|hence|"
    r"rationale|and|but|in particular|for example|example)\b",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    rf"(?:(?:then|first|next|finally|now|please),? ){{0,4}}{_DO}\b", re.IGNORECASE
)
# Words that a title does not need.
PREAMBLE = re.compile(
    r"(?:(?:so|ok|okay|well|also|and|but|then|finally|in the end),? +){0,3}"
    r"(?:(?:(?:we|i|they|it|the team|everyone)(?:['’]ve| have| was)? )?(?:all |finally )?"
    r"(?:decided|agreed|opted|chose|plan|found|discovered|noticed|confirmed|learn(?:ed|t)|"
    r"turn(?:s|ed) out|remember|don['’]t forget|todo|fixme|the (?:plan|decision) (?:is|was)):?"
    r"(?: (?:to|that|on))? +|(?:let['’]?s|let us|we(?:['’]ll| will)) +)",
    re.IGNORECASE,
)
