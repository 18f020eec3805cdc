"""English cue words, labels and headings of notes that point to a memory.

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
    pattern: re.Pattern[str]


def _any(phrases: str, **parts: str) -> str:
    """Join alternatives, separated by two spaces or a line break; fill in `<name>` from `parts`."""
    for name, part in parts.items():
        phrases = phrases.replace(f"<{name}>", part)
    return "(?:" + "|".join(phrase for phrase in re.split(r"\s{2,}", phrases.strip())) + ")"


_WHO = _any("we  i  they  you  the team  everyone  everybody  all of us")
_DO = _any("""
    add  apply  ask  back up  bake  book  build  bump  call  check  clean  click  close  commit
    configure  copy  create  cut  delete  deploy  disable  document  drop  enable  ensure  enter
    export  find  fix  go  import  install  investigate  log  make  measure  merge  migrate  mix
    move  open  order  pour  prepare  publish  pull  push  read  rebase  release  remove  rename
    replace  restart  restore  review  run  save  schedule  select  send  set  start  stop  tag
    test  turn  type  update  upgrade  use  verify  wait  write
""")


def _cue(kind: str, confidence: float, reason: str, phrases: str) -> Cue:
    return Cue(kind, confidence, reason, _whole(phrases))


def _whole(phrases: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){_any(phrases, who=_WHO, do=_DO)}(?!\w)", re.IGNORECASE)


_MONTHS = _any("""
    january  february  march  april  may  june  july  august  september  october  november
    december  spring  summer  autumn  fall  winter
""")
_SEASON = _any(rf"""
    (?:early |late |the ){{0,3}}{_MONTHS}  weeks? \d{{1,3}}  q[1-4]
    (?:first|second|third|fourth|last|next) (?:week|month|quarter)
""")
_UNIT = _any(r"""
    %  percent  degrees?  seconds?  minutes?  hours?  days?  weeks?  months?  years?  [kmcµ]?m
    k?g  kilos?  grams?  lit(?:er|re)s?  met(?:er|re)s?  miles?  volts?  watts?  euros?  dollars?
    [kmg]?bytes?  [kmgt]b  ms  people  times
""")

_HAPPENED = _any(
    "went  lost  fell  got  came  broke  left  stuck  shut  blew  burnt  sank  froze  stopped  "
    "ran out"
)
_CHAT = _any(
    "i  you  he  she  my  your  his  her  every(?:body|one)  somebody  someone  people"
)  # subjects of small talk
_NAME = r"@?[A-Z][\w-]++(?:'(?!ll )[\w-]*+)*+"
_NAMED = (
    r"(?<![\w'-])(?!(?:We|They|You|He|She|It|This|That|These|Those|There|The|What|Who|Which)\b)"
    rf"(?:{_NAME}(?: and {_NAME})?|I)"
)
_CUES = (
    Cue(
        Kind.DECISION,
        0.8,
        "states the outcome",
        re.compile(
            r"\A(?:the )?(?:final )?(?:verdict|conclusion|decision|outcome)\b[^:.]{0,60}: ",
            re.IGNORECASE,
        ),
    ),
    Cue(
        Kind.PROCEDURE,
        0.74,
        "lists steps",
        re.compile(
            r"\A(?:the )?(?:steps|instructions|procedure|recipe) (?:for|to|of)\b[^:.]{0,80}: ",
            re.IGNORECASE,
        ),
    ),
    _cue(
        Kind.EPISODE,
        0.76,
        "states a lesson learned",
        "lessons? (?:from|of|learn(?:ed|t))",
    ),
    Cue(
        Kind.TASK,
        0.66,
        "makes a request",
        re.compile(r"\A(?:[\w'-]+,? )?please,? \w+", re.IGNORECASE),
    ),
    _cue(
        Kind.DECISION,
        0.8,
        "reports a decision",
        r"""
            (?:the|our|my) (?:[\w'’-]+ ){1,5}(?:decided|agreed|voted|chose|picked|opted|resolved)
            voted (?:to|for|against|on)  signed off on
        """,
    ),
    _cue(
        Kind.IDEA,
        0.64,
        "suggests an option",
        r"it (?:might|could|would) be [\w-]+ to  what about \w+ing",
    ),
    _cue(Kind.PLAN, 0.7, "states an intention", "<who> (?:intend|aim|mean|hope) to"),
    Cue(
        Kind.PROCEDURE,
        0.68,
        "gives instructions",
        re.compile(
            rf"\A(?:if|when|once|to)\b[^,]{{3,80}}, (?:first |please )?"
            rf"(?:{_DO}|press|put|take|connect|fill|hold|switch|tell|ring|bring)\b[^,]+,[^,]+,",
            re.IGNORECASE,
        ),
    ),
    Cue(
        Kind.PATTERN,
        0.68,
        "forbids something",
        re.compile(
            r"\A(?:please )?(?:do not|don't|don’t) "
            r"(?!forget|know|think|worry|mind|care|get me)\w+",
            re.IGNORECASE,
        ),
    ),
    _cue(
        Kind.IDEA,
        0.68,
        "names an option",
        """
            (?:one|an|another) (?:option|possibility|alternative|idea) (?:is|was)
            (?:one|an|another) (?:option|possibility|alternative|idea) (?:would|might|could) be
            (?:one|an|another) way (?:is|was|(?:would|might|could) be)
        """,
    ),
    Cue(
        Kind.PLAN,
        0.66,
        "gives a schedule",
        re.compile(
            r"\A(?=.*\b(?:we|i|will|want|plan|going)\b)"
            + rf"(?>.*?\b(?:in|by|from|until|over) {_SEASON}\b)" * 2,
            re.IGNORECASE,
        ),
    ),
    Cue(
        Kind.PATTERN,
        0.6,
        "gives advice",
        re.compile(
            rf"\A(?:{_DO}|keep|leave|store|hold|put|wear|let|treat|cover|handle)\b.+\b"
            r"(?:until|unless|before|after|when|while|only|away from|at least|at most|"
            r"no more than)\b",
            re.IGNORECASE,
        ),
    ),
    Cue(
        Kind.CLAIM,
        0.54,
        "gives a measurement",
        re.compile(
            rf"\A(?=(?:\S+\s+){{5}}).*?\d\s?(?:{_UNIT}(?!\w)|per \w)", re.IGNORECASE | re.DOTALL
        ),
    ),
    _cue(
        Kind.DECISION,
        0.85,
        "states a decision",
        """
            <who>(?:'ve| have)? (?:all |finally |both )?(?:decided|agreed|settled|chose|opted)
            <who>(?:'ve| have)? (?:all |finally |both )?(?:voted|picked)
            (?:it (?:was|is|has been)|was|were) (?:decided|agreed|resolved)
            decided (?:to|on|against|that|not)  agreed (?:to|on|that)  settled on
            opted (?:for|to)  the decision (?:is|was)  final decision  (?:decision|verdict) to
        """,
    ),
    _cue(
        Kind.DECISION,
        0.72,
        "chooses between options",
        """
            (?:we(?:'ll| will| are|'re)?|let's|let us) (?:go|going|stick|sticking|stay|staying) with
            (?:we(?:'ll| will)|let's|let us) (?:adopt|drop)
            (?:chose|chosen|choose|picked|prefer|selected) .{2,80} (?:over|instead of|rather than)
            approved  rejected  ruled out  from now on
        """,
    ),
    _cue(
        Kind.TASK,
        0.85,
        "is marked as a to-do",
        """
            todo  fixme  action items?  to-do  remember to  don't forget to  assigned to
            follow[- ]up (?:on|with)
        """,
    ),
    Cue(
        Kind.TASK,
        0.7,
        "assigns an action",
        re.compile(
            rf"{_NAMED}(?:'ll| will| is going to| to| should| needs to) "
            rf"(?:also |then |please )?{_DO}\b"
        ),
    ),
    # Any other verb, except for states and habits: those are not tasks.
    Cue(
        Kind.TASK,
        0.64,
        "assigns an action",
        re.compile(
            rf"\A(?!.*\b(?:when|whenever|if|unless|always|never)\b){_NAMED}"
            r"(?:'ll| will| is going to| should| needs to) "
            r"(?:also |then |please )?"
            r"(?!(?:\w{1,30}ly )?"
            r"(?:be|have|become|seem|know|like|love|need|want|see|remain|stay)\b)"
            r"[a-z]+(?: \w+){2,}"
        ),
    ),
    _cue(
        Kind.TASK,
        0.62,
        "names open work",
        r"""
            (?:need|needs|have|has) to (?:be )?\w+  must (?:still )?be \w+ed  someone should
            remains to be  is still (?:missing|open|to be)
            not (?:yet )?(?:done|implemented|fixed)
        """,
    ),
    _cue(
        Kind.PATTERN,
        0.72,
        "states a rule",
        r"""
            always  never  must not  mustn't  make sure  be sure to  as a rule  rule of thumb
            best practice  avoid \w+ing  whenever  every time
        """,
    ),
    _cue(
        Kind.PLAN,
        0.72,
        "states a plan",
        r"""
            (?:the )?plan (?:is|was|for)  <who>(?:'re| are)? plan(?:s|ning)? (?:to|on|for)
            roadmap  milestones?  phase (?:\d|one|two|three)
            (?:next|this|coming) (?:sprint|quarter|month|week|year|release|iteration)  rollout
            first .{3,80}(?:, | and )then  strategy is
        """,
    ),
    _cue(
        Kind.PLAN,
        0.6,
        "announces an action",
        r"<who>(?:'ll| will| are going to|'re going to| shall) \w+",
    ),
    _cue(
        Kind.EPISODE,
        0.74,
        "describes a problem or its fix",
        """
            root cause  gotcha  workaround  worked around  outage  incident  regression
            post-?mortem  broke  crash(?:ed|es)  failed  fails  stall(?:s|ed)  hung  hangs
            timed out  leak(?:s|ed)  deadlock(?:s|ed)?  beware  watch out  pitfall  bit us
            (?:was|were|got) (?:broken|fixed|corrupted|lost)
            (?:we|i) (?:fixed|solved|mended|reverted|rolled back)  the fix (?:is|was)
        """,
    ),
    _cue(
        Kind.CLAIM,
        0.74,
        "reports a finding",
        """
            (?:it )?turn(?:s|ed) out
            (?:found|discovered|learned|noticed|confirmed) (?:that|the|a)  according to
            (?:we|i) (?:found|discovered|learn(?:ed|t)|noticed|measured|observed|confirmed)
            (?:we|i) (?:verified|reali[sz]ed)  the reason (?:is|was|why)
            (?:benchmarks?|tests?|logs?|results?|data) (?:show|showed|say|said|suggest)s?
            measurements? (?:show|showed|say|said|suggest)s?
        """,
    ),
    _cue(
        Kind.IDEA,
        0.66,
        "floats an idea",
        r"""
            what if  how about  (?:maybe|perhaps) (?:we|i|it|they|one)
            (?:we|one|you) (?:could|might)  could we  should we  might be worth
            worth (?:trying|exploring|a try|considering)  idea is  consider(?:ing)? \w+ing
            it would be (?:nice|good|great|cool)  alternatively  another option  brainstorm
        """,
    ),
    _cue(
        Kind.PROCEDURE,
        0.66,
        "explains a procedure",
        r"""
            (?:in order )?to \w++(?:,|(?: \S++){1,8}(?<=,)) (?:first |you |then |simply ){0,3}<do>
            how to \w+  the steps are  first,? <do>\b.{3,160}\bthen
        """,
    ),
    Cue(
        Kind.EPISODE,
        0.5,
        "explains an event",
        re.compile(
            rf"\A(?!{_CHAT}\b)(?>(?:[^,;]+? )??(?:[a-z]{{1,30}}ed|{_HAPPENED})\b).*?[ ,]"
            r"(?:because|since|due to|as (?:the|a|an|it|there))\b",
            re.IGNORECASE,
        ),
    ),
    Cue(
        Kind.CLAIM,
        0.48,
        "compares two things",
        re.compile(
            rf"\A(?!(?:{_CHAT}|we|it|this|that)\b)"
            r"(?!.*\b(?:was|were|had|[a-z]{1,30}ed)\b)"
            r"(?:\S+ ){2,8}?"
            r"(?:(?:more|less|fewer) (?:\S+ ){1,3}?|better |worse |[a-z]{3,30}er )than \w",
            re.IGNORECASE,
        ),
    ),
    Cue(
        Kind.CLAIM,
        0.56,
        "states a fact with a figure",
        re.compile(
            r"\A(?=.*\d).*\b"
            + _any("""
                is  are  was  were  has  have  had  takes?  took  needs?  requires?  supports?
                costs?  uses?  runs?  handles?  returns?  holds?  contains?  allows?  limits?
                expires?  equals?  weighs?  measures?  lasts?  grew  fell  rose  reached  dropped
                increased  decreased
            """)
            + r"\b",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    _cue(
        Kind.CLAIM,
        0.46,
        "states a property",
        r"""
            is (?:not )?(?:deprecated|required|supported|safe|unsafe|idempotent|limited|owned)
            is (?:not )?(?:located|written|based|(?:in)?compatible)
            does(?: not|n't) (?:support|work|allow|scale)  cannot  can't
            only (?:works|supports|accepts|runs)  depends on  requires  consists of  means that
        """,
    ),
)
CUES = tuple(sorted(_CUES, key=lambda cue: -cue.confidence))  # the first match decides

_LABELLED = {
    Kind.DECISION: """
        decision  decisions  decided  agreed  resolution  resolutions  resolved  outcome
    """,
    Kind.TASK: """
        todo  todos  to do  to-do  action  actions  action item  action items  task  tasks
        next steps  next step  follow-up  follow-ups  follow up  follow ups  open tasks
    """,
    Kind.PLAN: "plan  plans  roadmap  milestones  strategy",
    Kind.IDEA: "idea  ideas  proposal  proposals  suggestion  suggestions  brainstorm  options",
    Kind.CLAIM: """
        fact  facts  finding  findings  result  results  claim  claims  observation  observations
        learned  learnings  lesson  lessons  lessons learned  insight  insights  constraint
        constraints  note  important
    """,
    Kind.PROCEDURE: """
        procedure  procedures  steps  runbook  how to  howto  instructions  setup  workflow  recipe
    """,
    Kind.PATTERN: """
        rule  rules  guideline  guidelines  best practice  best practices  pattern  patterns  tip
        tips  convention  conventions
    """,
    Kind.EPISODE: """
        bug  bugs  incident  root cause  gotcha  gotchas  warning  problem  problems  issue
        issues  fix  workaround  caveat  caveats
    """,
}
# `Decision: ...`, or the heading above a list.
LABELS = {
    label: kind
    for kind, labels in _LABELLED.items()
    for label in re.split(r"\s{2,}", labels.strip())
}
# Labels that say little: people put them before anything.
MILD = frozenset(
    {
        "note",
        "important",
        "result",
        "results",
        "outcome",
        "actions",
        "action",
        "setup",
        "options",
        "problem",
        "issue",
        "fix",
        "workflow",
    }
)

# A question that asks for an action, not for an answer.
REQUEST = re.compile(
    r"\A(?:[A-Z][\w'-]+, )?(?:(?i:can|could|would|will) "
    r"(?:(?i:you|someone|somebody|anyone|anybody|one of you)|(?!We\b|I\b)[A-Z][\w'-]+)(?: please)? "
    r"(?!(?:be|have|know|see|hear|remember|repeat|understand|follow|believe|imagine|tell me)\b)\w+"
    r"|(?i:(?!.*\b(?:repeat|say that)\b).*\bplease\b))"
)
REASON = _whole(
    "because  since  so that  due to  therefore  in order to  as it  otherwise  that way  "
    "the reason"
)
HEDGE = _whole(
    "maybe  perhaps  probably  possibly  might  i think  i guess  not sure  unclear  presumably  "
    "seems?  apparently"
)
UNDECIDED = re.compile(
    r"(?:\b(?:not|never|yet to|still to|to be|before (?:we|it is|it's)|if (?:we|it is|they))|n't) "
    r"(?:yet |be |been |have |really ){0,4}(?:decid|agree|settl|chos|choose|pick)\w*"
    r"|\b(?:undecided|no (?:decision|agreement)|should we|whether (?:we|to)|tbd)\b",
    re.IGNORECASE,
)
CONTINUES = re.compile(
    _any("""
        because  since  this  that  these  those  it  otherwise  the reason  so  therefore  which
        as a result  hence  rationale  and  but  in particular  for example
    """)
    + r"\b",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    rf"(?:(?:then|first|next|finally|now|please),? ){{0,4}}{_DO}\b", re.IGNORECASE
)
# Words that a title does not need.
PREAMBLE = re.compile(
    r"(?:(?:so|ok|okay|well|also|and|but|then|finally|in the end|"
    r"after (?:some|a long) discussion),? +){0,3}(?:"
    + _any(
        """
            <who>(?:'ve| have)? (?:all |finally )?(?:decided|agreed|opted|chose|plan|are planning)
            (?:it was |was )?(?:decided|agreed)  the plan is  the decision (?:is|was)
            (?:we |i )?(?:found|discovered|learn(?:ed|t)|noticed|reali[sz]ed|confirmed)
            (?:it )?turns out  remember  don't forget  todo  fixme
        """,
        who=_WHO,
    )
    + r"(?: out)?:?(?: *(?:to|that|on))? +|(?:let's|let us|we(?:'ll| will)) +)",
    re.IGNORECASE,
)
