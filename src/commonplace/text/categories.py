"""The categories of items, and words that indicate each, in English, German, French and Spanish.

Words are compared by their first six letters, instead of stemming in each language.
"""

from collections.abc import Mapping

OTHER = "Other"
_LETTERS = 6
_LEAST = 3  # words that have to speak for a category
_SHARE = 0.012  # of all the words that say something

_PROFILES = {
    "Technology": """software hardware computer computing code coding program programming
        programmer programmieren algorithm api server client database query cache deploy docker
        kubernetes linux python javascript typescript rust java function compiler library
        framework backend frontend browser http https json protocol network internet cloud
        encryption security token agent model embedding neural llm chatbot robot smartphone app
        developer debug bug git repository commit test runtime thread kernel cpu gpu memory
        logiciel ordinateur informatique rechner datenbank netzwerk ordenador servidor
        software-entwicklung web website async request endpoint schema config install""",
    "Science": """science scientific scientist research researcher experiment hypothesis theory
        physics physicist chemistry chemical biology biologist astronomy planet galaxy star
        telescope quantum particle atom molecule cell gene genome dna protein evolution species
        fossil ecosystem climate ocean geology mathematics theorem equation proof laboratory
        observation measurement energy gravity neuron wissenschaft forschung versuch physik
        chemie biologie recherche scientifique physique chimie ciencia investigación física
        química universe radiation wavelength orbit nasa""",
    "Business": """business company companies corporate startup founder market marketing customer
        sales revenue profit pricing price investor investment invest venture stock shares
        finance financial bank banking economy economic economist trade budget cost strategy
        management manager executive ceo employee hiring product launch growth brand advertising
        competitor supply unternehmen wirtschaft kunde umsatz gewinn entreprise marché économie
        client-base empresa mercado economía negocio inflation tax taxes income capital loan
        debt industry commercial quarter""",
    "Health": """health healthy medical medicine doctor physician patient hospital disease illness
        symptom diagnosis therapy treatment drug vaccine virus infection cancer heart blood
        pressure diabetes diet nutrition vitamin exercise fitness sleep mental anxiety
        depression stress surgery clinical trial dose nurse brain gesundheit krankheit arzt
        medizin santé maladie médecin salud enfermedad médico obesity immune pain muscle calorie
        protein-rich workout pregnancy""",
    "Learning": """learn learning learner teach teacher teaching student school university college
        education educational course lesson lecture curriculum classroom study studying exam
        homework tutorial textbook memorise memorize recall flashcard practice skill training
        pedagogy knowledge reading writing notes note-taking spaced repetition lernen lehrer
        schule unterricht studium apprendre école élève enseignement aprender escuela estudiante
        enseñanza mentor feedback habit""",
    "Arts": """art artist artistic painting painter paint sculpture museum gallery exhibition
        music musician song album band concert orchestra composer melody guitar piano film movie
        cinema director actor actress theatre theater dance novel novelist poem poet poetry
        literature fiction author writer photography photographer design designer architecture
        kunst künstler musik gemälde musique peinture roman cinéma arte música pintura novela
        película drawing canvas opera rhythm chord lyrics typography""",
    "History": """history historical historian century ancient medieval empire emperor king queen
        kingdom dynasty war battle army soldier revolution conquest colonial colony civilization
        archaeology archaeologist roman rome greek egypt egyptian pharaoh renaissance treaty
        victory invasion fortress ruins manuscript monarchy feudal geschichte jahrhundert krieg
        kaiser könig histoire siècle guerre empire-building roi historia siglo guerra rey
        imperio crusade viking napoleon castle tomb reign""",
    "Society": """society social politics political politician government election vote voter
        parliament senate congress president minister party law legal court judge justice rights
        human citizen democracy democratic policy police crime migration refugee immigration
        religion religious church culture community gender inequality poverty protest campaign
        constitution regierung wahl gesellschaft recht partei gesetz gouvernement loi société
        gobierno ley sociedad elección journalism journalist newspaper media censorship privacy
        union welfare housing city urban""",
    "Life": """life family home house parent parents mother father child children kids baby
        marriage wedding love friend friendship relationship happiness cooking cook recipe
        kitchen bake oven flour dough garlic onion butter dinner breakfast garden gardening
        plant travel trip hotel flight vacation holiday hiking beach sport football soccer
        tennis game player team hobby pet dog cat fashion dress money-saving familie leben küche
        rezept reise garten famille cuisine recette voyage vie familia cocina receta viaje vida
        weekend birthday morning routine""",
}

_VOICES = {
    word[:_LETTERS]: name
    for name, profile in reversed(_PROFILES.items())
    for word in profile.split()
}
CATEGORIES = (*_PROFILES, OTHER)


def category(counts: Mapping[str, int]) -> str:
    """Return the category that most words indicate; repeated words count a little more."""
    votes = dict.fromkeys(_PROFILES, 0.0)
    kinds = dict.fromkeys(_PROFILES, 0)
    for word, count in counts.items():
        if name := _VOICES.get(word[:_LETTERS]):
            votes[name] += min(count, 3) ** 0.5
            kinds[name] += 1
    best = max(votes, key=votes.__getitem__)
    return best if kinds[best] >= _LEAST and votes[best] >= _SHARE * len(counts) else OTHER
