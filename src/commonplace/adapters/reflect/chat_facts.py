"""What a user says of themselves and their work, between the requests of a conversation.

A fact is in the first person and has two specifics: figures, dates, names. The assistant's words
are nobody's memories.
"""

import re

from commonplace.model import EntityType

_FEWEST_SPECIFICS = 2
# Where one clause ends and another about "I" or "we", or a request, begins.
_JOINT = re.compile(
    r"(?:(?:[,;.!]| [-–—])(?: (?:and|but|so|or|since|because|especially since|considering))?|"
    r" (?:and|but|so)) "
    r"(?=(?:I|I['’](?:m|ve|d|ll)|we|can|could|would|should|do|does|did|how|what|which|where|"
    r"when|is|are|any|maybe|you know|or|here['’]s|got|help|please)\b)",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:(?:so|ok(?:ay)?|sure|hm+|well|alright|also|yeah|yes|thanks|actually|and|but|"
    r"you know|I mean|kinda),? ){0,3}",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"(?:(?:as|since|because|considering|given that) )?(?:"
    r"(?:I|[Ww]e)(?:['’](?:m|ve|re)| am| are| have|['’]ll)? (?!(?:kinda |really |still |just )?(?:"
    r"think|guess|see|wonder|know|want|need|mean|hope|understand|feel|believe|can|could|should|"
    r"would|do|don['’]t|am|was wondering|wondering|trying|not|unsure|sure|having|confused|curious|"
    r"stuck|worried|heard|looking|make|keep|thinking that)\b)\w+"
    r"|I['’](?:m|ve) (?:a|an|the|\d)|I['’]m [A-Z]"
    r"|(?:[Mm]y|[Oo]ur) (?:[\w’'-]+,? ){1,4}?(?:is|are|was|were|has|have|who|told|wants)\b"
    r"|[Mm]y (?:\w+,? ){1,3}[A-Z]\w+,|I think I['’]ll (?:go|start) with\b"
    r"|[Ll]et['’]?s (?:use|switch|move|go|stick|keep|drop)\b)"
)
_SPECIFIC = (
    re.compile(r"(?<![\w.,:/%-])[$€£]?\d[\w.,:/%-]*+"),
    re.compile(r"`[^`\n]{1,80}`|\"[^\"\n]{2,60}\""),
    re.compile(r"(?<= )(?!I\b)[A-Z][\w.+#’'-]*+(?: (?!I\b)[A-Z][\w.+#’'-]*+){0,4}"),
)
_DECIDED = re.compile(
    r"\blet['’]?s\b|\b(?:I|we)(?:['’](?:ve|ll)| have| will| think I['’]ll)? "
    r"(?:decided|chosen|chose|agreed|settled|go with|going with|opted|start with)\b",
    re.IGNORECASE,
)
_PLANNED = re.compile(
    r"\b(?:gonna|going to|plan(?:ning)? (?:to|on|for|a)|my goal|goal (?:to|of|is)|deadline|aim to|"
    r"I['’]ll|due)\b",
    re.IGNORECASE,
)
_CONSIDERED = re.compile(
    r"\b(?:considering|thinking (?:of|about)|debating|deciding between|torn between)\b",
    re.IGNORECASE,
)


def fact(sentence: str) -> tuple[str, str, float] | None:
    """Return kind, words and confidence of the fact that a user's sentence states, if any."""
    joints = list(_JOINT.finditer(sentence))
    ends = [*(joint.start() for joint in joints), len(sentence)]
    clauses = list(zip([0, *(joint.end() for joint in joints)], ends, strict=True))
    words, is_open, first = "", False, ""
    for number, (start, end) in enumerate(clauses):
        filler = _FILLER.match(sentence, start, end)
        begin = filler.end() if filler else start
        is_fact = _FACT.match(sentence, begin, end) and sentence[end - 1 : end] != "?"
        if is_fact and not words:
            first = sentence[begin:end]
            if first.lower().startswith(("we ", "our ")) and number:
                begin = clauses[number - 1][0]  # whom it is about
        if is_fact:
            joint = sentence[ends[number - 1] : begin] if is_open else ", " if words else ""
            words += joint + sentence[begin:end]
        is_open = bool(is_fact)
    words = words.rstrip(" ,;-–—")
    specifics = {match[0] for each in _SPECIFIC for match in each.finditer(words)}
    is_decided = _DECIDED.search(words) is not None
    if len(specifics) < _FEWEST_SPECIFICS and not (is_decided and len(words.split()) > 5):
        return None
    kind = (
        EntityType.DECISION
        if is_decided
        else EntityType.IDEA
        if _CONSIDERED.search(first)
        else EntityType.PLAN
        if _PLANNED.search(words)
        else EntityType.CLAIM
    )
    return kind, words, min(0.8, 0.5 + 0.05 * len(specifics))
