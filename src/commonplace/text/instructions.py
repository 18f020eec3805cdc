"""Sentences that address a language model: instructions inside a text.

They are data like the rest of the text, but automatic summaries do not repeat them.
"""

import re

import re2

_READ = 2_000  # characters of a text that are looked at; summaries and key points are shorter
_MACHINE = (
    r"(?:AIs?|LLMs?|GPTs?|A\.I\.|(?:large )?language models?|chat ?bots?|chatgpt|claude|copilot|"
    r"gemini|"
    r"(?:AI |virtual |digital )(?:agents?|assistants?|models?|systems?|readers?|crawlers?))"
)
_ORDERS = (
    r"(?:instructions?|prompts?|directives?|guidelines?|guardrails?|constraints|"
    r"restrictions|orders|safety|rules)"
)
_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|former|foregoing|existing|initial|"
    r"original|all|any|your|system|everything)"
)
_DROP = r"(?:ignore|disregard|forget|override|bypass|discard|set aside|overrule|circumvent)"


def _within(words: int) -> str:
    """Up to so many words between two others of one sentence."""
    return rf"(?:[^\w.!?]+[\w'-]+){{0,{words}}}[^\w.!?]+"


_RULES = (
    # Drop what you were told before.
    rf"\b{_DROP}\b{_within(2)}{_EARLIER}\b{_within(3)}{_ORDERS}\b",
    rf"\b{_DROP}\b{_within(1)}(?:everything|all|anything)\b{_within(2)}(?:you|above|before|told|"
    rf"said)\b",
    rf"\b{_DROP}{_within(1)}your {_ORDERS}\b",
    rf"\b(?:your|these|all){_within(2)}{_ORDERS} (?:are|is) (?:now )?(?:void|obsolete|cancelled|"
    rf"replaced|superseded)\b",
    rf"\bsupersedes? (?:all|any|your|every){_within(2)}{_ORDERS}\b",
    r"\b(?:new|updated) (?:system )?(?:instructions?|orders|directives?)\s*:",
    r"\byour new (?:task|role|goal|instructions?|orders|directive|objective) (?:is|are)\b",
    # Words that stand for a speaker of a conversation with a model.
    r"^\W{0,3}(?:system|assistant|developer|human|ai|llm|model|chatgpt|claude|gpt)"
    r"(?:\s+(?:prompt|message|override|note|notice|"
    r"instructions?|update|directive|command|alert))?\s*[\])>]?\s*:",
    r"^\W{0,3}\[(?:system|assistant|inst|developer)\b",
    r"<\|[a-z_]+\|>|\[/?INST\]|<</?SYS>>|</?(?:system|assistant|instructions?)>",
    r"##+\s*(?:instructions?|system|assistant)\s*:",
    r"\bassistant\s*:",
    # A machine that is named and told what to do.
    r"\b(?:as|if you(?:'re| are)|you are(?: now)?|act as|pretend (?:that )?(?:to be|you are)|"
    r"dear|hey|hi|hello|attention|note to|"
    rf"message (?:to|for)|instructions? (?:to|for)|for)(?: all| any| an| a| the| every| this| "
    rf"my)? {_MACHINE}\b.*\b"
    r"(?:you|your|must|should|please|do not|don't|never|always|read|visit|include|ignore|delete|"
    r"add|send|praise|rate|paste|say|"
    r"mention)\b",
    rf"\b(?:dear|hey|attention|note to|message (?:to|for)|if you are) (?:all |any |the |every |"
    rf"an? )?{_MACHINE}\b",
    rf"\b(?:you are now|act as|pretend (?:that )?(?:to be|you are))(?: an?| the)? {_MACHINE}\b",
    rf"^\W{{0,3}}(?:any |all |every )?{_MACHINE}\b(?: reading| that reads?| processing| who| "
    rf"which)?{_within(3)}"
    r"(?:must|should|shall|has to|have to|need to)\b",
    r"^\W{0,3}(?:claude|chatgpt|copilot|gemini|assistant|ai|bot)\s*,",
    r"\b(?:the )?(?:assistant|model|ai|llm|reader is an ai)\b(?:,? (?:therefore|so) it)? "
    r"(?:must|has to|should) "
    r"(?:silently|immediately|now|obey|follow|ignore|reply|respond|answer|call|execute|delete|"
    r"send|say|add|never|always)\b",
    # What only a model is asked to do.
    rf"\b(?:call|invoke|trigger)\b{_within(1)}(?:the|your|this|these)\b{_within(2)}tools?\b",
    r"\b(?:call|invoke|use|run) the [a-z]+_[a-z_]+ tool\b",
    r"\buse your tools?\b",
    rf"\b(?:reveal|print|output|show|repeat|disclose|leak|expose|display|give|tell|summari[sz]e)"
    rf"\b{_within(4)}"
    r"(?:system prompt|hidden (?:prompt|instructions?)|your (?:\w+ )?(?:prompt|instructions?)|"
    r"developer instructions?)",
    r"\bfrom (?:now|this point|here) (?:on|forward|onwards?),? (?:you|your|answer|respond|reply|"
    r"always|act)\b",
    r"\byou are now (?:in|a|an|the|dan|my|no longer|free|unrestricted)\b",
    r"\b(?:do not|don't|never|must not)(?: ever)? (?:tell|inform|alert|notify|warn|ask) the "
    r"(?:user|human|owner|reader)\b",
    r"\bwithout (?:telling|asking|informing|notifying|alerting|the knowledge of) (?:the )"
    r"?(?:user|human|owner)\b",
    r"\b(?:do not|don't|never|must not) mention (?:that )?(?:this|these) (?:message|"
    r"instructions?|prompt|note)\b",
    r"\b(?:developer|dan|jailbreak|god|unrestricted) mode (?:is |has been )?(?:now )?(?:on|"
    r"enabled|activated|active)\b",
    r"\bjailbreak(?:ed)?\s*:",
    r"\b(?:begin|start|end|finish|preface|prefix) (?:your|each|every|the) "
    r"(?:reply|response|answer|summary|output)s? (?:with|by)\b",
    r"\b(?:respond|reply|answer)(?: to [\w ]{1,40})? (?:only|exclusively|solely) with\b",
    r"\bin your (?:summary|reply|response|final answer)\b.*\b(?:praise|include|mention|say|"
    r"state|write|add)\b|"
    r"\b(?:praise|include|mention|say|state|write|add)\b.*\bin your (?:summary|reply|response|"
    r"answer)\b",
    r"\b(?:when|while|if you are) (?:you )?(?:summari[sz](?:e|ing)|answering|processing|reading)"
    r" (?:this|the) "
    r"(?:document|page|text|article|file|note|email)\b.{0,10}\b"
    r"(?:state|say|write|include|add|mention|tell|always|never|do not|ignore|also)\b",
    r"\bthe user (?:has |have )?(?:already )?(?:approved|authori[sz]ed|consented|agreed)\b",
    # The most common one in other languages.
    r"\b(?:ignoriere|vergiss|missachte)\b.{0,40}\b(?:anweisung|instruktion|regel)",
    r"\b(?:ignore[zr]|oublie[zr])\b.{0,40}\binstructions?\b",
    r"\b(?:ignor[ae]|olvid[ae])\b.{0,40}\binstrucciones\b",
)
# Where words are not parted: one of the first before one of the second.
_DROP_UNSPACED, _ORDERS_UNSPACED = (
    ("忽略", "无视", "無視", "忘记", "忘記"),
    ("指令", "指示", "说明", "說明"),
)

_SENTENCE = re.compile(r"[^.!?。！？]+[.!?。！？]*")
_OPTIONS = re2.Options()
_OPTIONS.case_sensitive, _OPTIONS.log_errors, _OPTIONS.encoding = (
    False,
    False,
    re2.Options.Encoding.LATIN1,
)
_ADDRESSED = re2.compile("|".join(f"(?:{rule})" for rule in _RULES).encode(), _OPTIONS)


def addresses_machine(text: str) -> bool:
    """Whether a sentence, or one of a few, tells a machine what to do. Linear in the text."""
    text = text[:_READ].replace("’", "'")
    if not text.isascii() and any(
        -1 < text.find(drop) < max(map(text.rfind, _ORDERS_UNSPACED)) for drop in _DROP_UNSPACED
    ):
        return True
    plain = " ".join(text.split()).encode("ascii", "replace").replace(b"?", b" ")
    return _ADDRESSED.search(plain) is not None


def sentences(text: str) -> list[str]:
    """The text in pieces that end with a mark, or at its end."""
    return _SENTENCE.findall(text)


def without_orders(text: str) -> str:
    """A summary without those of its sentences that address a machine."""
    return "".join(
        sentence for sentence in sentences(text) if not addresses_machine(sentence)
    ).strip()
