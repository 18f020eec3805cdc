"""Forms of the keys that services give out, as their documentation tells: prefix, alphabet, length.

`{hex:32}` stands for 32 characters of an alphabet; the last may be more. Keys without a prefix of
their own count only behind the name of their service, which comes first.
"""

import re

ALPHABETS = {
    "digits": "0-9",
    "hex": "0-9a-fA-F",
    "upper": "0-9A-Z",
    "alnum": "0-9A-Za-z",
    "url": r"\w=-",
    "any": r"\w.=+/-",
    "azure": r"\w.~-",
    "jwt": r"\w.=+/\\-",
    "quoted": "0-9A-Za-z%",
    "base64": "0-9A-Za-z+/=",
}
UUID = "{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}"

PREFIXED = """
1Password A3-{upper:6}-{url:25} ops_ey{base64:100}
Adobe p8e-{alnum:32}
Age AGE-SECRET-KEY-1{upper:58}
Airtable pat{alnum:14}.{hex:64}
Alibaba LTAI{alnum:20}
Anthropic sk-ant-{url:20}
Artifactory AKCp{alnum:69} cmVmd{alnum:59}
Atlassian ATATT3{url:100} ATCTT3{url:100}
Authress sc_{alnum:5-30}.{alnum:4-6}.acc{any:40} ext_{alnum:5-30}.{alnum:4-6}.acc{any:40}
Authress scauth_{alnum:5-30}.{alnum:4-6}.acc{any:40} authress_{alnum:5-30}.{alnum:4-6}.acc{any:40}
AWS AKIA{upper:16} ASIA{upper:16} ABIA{upper:16} ACCA{upper:16} A3T{upper:17} ABSK{base64:60}
AWS bedrock-api-key-{base64:20}
Clickhouse 4b1d{alnum:38}
Clojars CLOJARS_{alnum:60}
Cloudflare v1.0-{hex:24}-{hex:146}
Databricks dapi{hex:32}
DigitalOcean doo_v1_{hex:32} dop_v1_{hex:32} dor_v1_{hex:32}
Doppler dp.pt.{alnum:40} dp.st.{url:40}
Duffel duffel_test_{url:43} duffel_live_{url:43}
Dynatrace dt0c01.{alnum:24}.{alnum:64}
EasyPost EZAK{alnum:54} EZTK{alnum:54}
Facebook EAAC{alnum:40} EAAM{alnum:40} {digits:15-16}|{url:27} {digits:15-16}%{url:27}
Flutterwave FLWSECK_TEST-{alnum:12} FLWPUBK_TEST-{alnum:32}
Fly fo1_{url:43} fm1a_{base64:100} fm1r_{base64:100} fm2_{base64:100}
Frame.io fio-u-{url:64}
GitHub ghp_{alnum:36} gho_{alnum:36} ghu_{alnum:36} ghs_{alnum:36} ghr_{alnum:36}
GitHub github_pat_{url:40}
GitLab glpat-{any:20} gldt-{url:20} glft-{url:20} glrt-{any:20} glptt-{hex:40} glimt-{url:25}
GitLab glffct-{url:20} glsoat-{url:20} gloas-{url:64} glagent-{url:50} glcbt-{url:20}
GitLab GR1348941{url:20} _gitlab_session={alnum:32}
Google AIza{url:35} ya29.{url:14} 1//0{url:25} GOCSPX-{url:28}
Grafana glc_{base64:32} glsa_{url:41} eyJrIjoi{base64:70}
Groq gsk_{alnum:28}
Harness pat.{url:22}.{alnum:24}.{alnum:20} sat.{url:22}.{alnum:24}.{alnum:20}
HashiCorp hvs.{url:24} hvb.{url:100} s.{alnum:24} {alnum:14}.atlasv1.{url:60}
Heroku HRKU-AA{url:58}
HuggingFace hf_{alnum:30} api_org_{alnum:30}
Infracost ico-{alnum:32}
Intra42 s-s4t2ud-{hex:64} s-s4t2af-{hex:64}
JWT ZXlK{jwt:26} ey{alnum:17-1000}.ey{jwt:17}
Linear lin_api_{alnum:40}
Lob live_{hex:35} test_{hex:35} live_pub_{hex:31} test_pub_{hex:31}
Mailgun key-{hex:32} pubkey-{hex:32}
Mapbox pk.{alnum:60}.{alnum:22} sk.{alnum:60}.{alnum:22}
MaxMind {alnum:6}_{alnum:29}_mmk
Microsoft webhook.office.com/webhookb2/{url:36}@{url:36}/IncomingWebhook/{alnum:32}/{url:36}
Microsoft {azure:3}{digits:1}Q~{azure:31}
NewRelic NRJS-{hex:19} NRII-{url:32} NRAK-{alnum:27}
Notion ntn_{alnum:40}
npm npm_{alnum:36}
NVIDIA nvapi-{url:40}
Octopus API-{upper:26}
OpenAI sk-{url:20}
OpenShift sha256~{url:43}
Perplexity pplx-{alnum:40}
PlanetScale pscale_tkn_{any:32} pscale_oauth_{any:32} pscale_pw_{any:32}
Postman PMAK-{hex:24}-{hex:34}
Prefect pnu_{alnum:36}
Pulumi pul-{hex:40}
PyPI pypi-AgE{url:16}
ReadMe rdme_{alnum:70}
Replicate r8_{alnum:30}
RubyGems rubygems_{hex:48}
Scalingo tk-us-{url:48}
SendGrid SG.{any:30}
Sendinblue xkeysib-{hex:64}-{alnum:16}
Sentry sntrys_eyJpYXQiO{any:60} sntryu_{hex:64}
Settlemint sm_aat_{alnum:16} sm_pat_{alnum:16} sm_sat_{alnum:16}
Shippo shippo_live_{hex:40} shippo_test_{hex:40}
Shopify shpat_{hex:32} shpca_{hex:32} shppa_{hex:32} shpss_{hex:32}
Slack xoxb-{url:20} xoxp-{url:20} xoxe-{url:20} xoxe.xoxb-{url:20} xoxe.xoxp-{url:20} xoxo-{url:10}
Slack xoxs-{url:10} xoxa-{url:8} xoxr-{url:8} xapp-{url:20}
Slack hooks.slack.com/services/{base64:40} hooks.slack.com/workflows/{base64:40}
Slack hooks.slack.com/triggers/{base64:40}
Sourcegraph sgp_{hex:40} sgp_local_{hex:40} sgp_{hex:16}_{hex:40}
Square EAAA{url:22} sq0atp-{url:22} sq0csp-{url:22}
Stripe sk_live_{alnum:10} sk_test_{alnum:10} sk_prod_{alnum:10}
Stripe pk_live_{alnum:10} pk_test_{alnum:10}
Stripe rk_live_{alnum:10} rk_test_{alnum:10} rk_prod_{alnum:10}
Svix whsec_{base64:20}
Tavily tvly-{url:20}
Telegram {digits:8}:AA{url:32}
Twilio SK{hex:32}
Typeform tfp_{any:40}
Yandex AQVN{url:35} t1.{url:20-300}.{url:86}
this sk_{url:40} co_{url:43} cr_{url:43}
"""

BEHIND_NAMES = """
adafruit {url:32}
adobe {hex:32}
airtable {alnum:17}
algolia {alnum:32}
alibaba {alnum:30}
artifactory {alnum:64} {alnum:73}
asana {digits:16} {alnum:32}
atlassian {alnum:20} {alnum:24}
beamer b_{url:44}
bintray {alnum:64} {alnum:73}
bitbucket {alnum:32} {url:64}
bittrex {alnum:32}
cloudflare {hex:37} {url:40}
codecov {alnum:32}
coapikey {alnum:40}
cohere {alnum:40}
coinbase {url:64}
confluence {alnum:24}
confluent {alnum:16} {alnum:64}
contentful {url:43}
contribsys {hex:8}:{hex:8}
datadog {alnum:40}
discord {digits:18} {url:32} {hex:64}
dnkey dnkey-{url:26}-{url:52}
droneci {alnum:32}
dropbox {alnum:15} {alnum:11}AAAAAAAAAA{url:43} sl.{url:135}
etsy {alnum:24}
facebook {hex:32}
fastly {url:32}
finicity {alnum:20} {hex:32}
finnhub {alnum:20}
flickr {alnum:32}
freshbooks {alnum:64}
gitter {url:40}
gocardless live_{url:40}
heroku UUID
hubspot UUID
intercom {url:60}
jfrog {alnum:64} {alnum:73}
jira {alnum:24}
kraken {any:80}
kucoin {hex:24} UUID
launchdarkly {url:40}
linear {hex:32}
linkedin {alnum:14} {alnum:16}
looker {alnum:20} {alnum:24}
mailchimp {hex:32}-us{digits:1}
mailchimpsdk.initialize {hex:32}-us{digits:1}
mailgun {alnum:32}-{alnum:8}-{alnum:8}
mattermost {alnum:26}
meraki {hex:40}
messagebird {alnum:25} UUID
netlify {url:40}
newrelic {alnum:64}
newyorktimes {url:32}
nytimes {url:32}
okta 00{url:40}
plaid {alnum:24} {alnum:30} access-sandbox-UUID access-development-UUID access-production-UUID
privateai {alnum:32}
rapidapi {url:50}
sendbird {hex:40} UUID
sentry {hex:64}
snyk UUID
sonar {url:40} {url:44}
squarespace UUID
sumo su{alnum:12} {alnum:64}
telegr {digits:5-16}:A{url:34}
travis {alnum:22}
twitch {alnum:30}
twitter {alnum:25} {alnum:45} {alnum:50} {digits:15-25}-{alnum:20} AAAAAAAAAAAAAAAA{quoted:80}
xray {alnum:64} {alnum:73}
yandex YC{url:38} t1.{any:100}
zendesk {alnum:40}
"""
_PLACE = re.compile(r"\{(\w+):(\d+)(?:-(\d+))?\}")


def _pattern(form: str) -> str:
    """Return a form as a regular expression."""
    form = form.replace("UUID", UUID)
    pattern, at = "", 0
    for place in _PLACE.finditer(form):
        alphabet, least, most = ALPHABETS[place[1]], place[2], place[3] or place[2]
        # The last may be more, so that no rest of a longer key stays.
        size = f"{{{least},}}+" if place.end() == len(form) else f"{{{least},{most}}}"
        pattern += f"{re.escape(form[at : place.start()])}[{alphabet}]{size}"
        at = place.end()
    return pattern + re.escape(form[at:])


def _forms(table: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in table.strip().splitlines():
        name, *forms = line.split()
        found.setdefault(name, []).extend(map(_pattern, forms))
    return found


_ANY = "|".join("|".join(forms) for forms in _forms(PREFIXED).values())
KEY = re.compile(rf"(?<![0-9A-Za-z])(?:{_ANY})", re.IGNORECASE)
BEHIND = {
    name: re.compile("|".join(forms), re.IGNORECASE) for name, forms in _forms(BEHIND_NAMES).items()
}
# A value behind a sign of assignment, and what may stand between that and a name.
VALUE = re.compile(
    r"""(?:[=:,|]|(?<!-)>)[`"'\s=]{0,5}(?P<only>[\w+/.%~-][\w+/.%|~:=-]{13,1000}+)"""
)
_BETWEEN = re.compile(r"""[ \t\w.]{0,35}[\s'"]{0,3}[=:?|>]{0,2}""")
_REACH = 60  # characters before the sign in which the name is


def is_behind_name(found: re.Match[str]) -> bool:
    """Whether a `VALUE` has the form of a key of the service that is named before it."""
    value = found["only"].rstrip(".:|")
    if value.isalpha() and (value.islower() or value.isupper() or value.istitle()):
        return False
    before = found.string[max(0, found.start() - _REACH) : found.start()].lower()
    plain = before.replace("_", "").replace("-", "")
    return any(
        forms.fullmatch(value) and _BETWEEN.fullmatch(plain, plain.rindex(name) + len(name))
        for name, forms in BEHIND.items()
        if name in plain
    )
