"""Variants of a label's name: plain words, paraphrased, shortened, or uninformative."""

from __future__ import annotations

import random

from spanshot.engine.names import readable

_COMPOUNDS = {
    "broadcastprogram": "broadcast program",
    "sportsteam": "sports team",
    "sportsleague": "sports league",
    "sportsfacility": "sports facility",
    "sportsevent": "sports event",
    "politicalparty": "political party",
    "mediaorganization": "media organization",
    "mediaroad": "media road",
    "bodiesofwater": "body of water",
    "livingthing": "living thing",
    "astronomything": "astronomical object",
    "biologything": "biological thing",
    "chemicalthing": "chemical substance",
    "educationaldegree": "educational degree",
    "writtenart": "written work",
    "showorganization": "show organization",
    "phonenumber": "phone number",
    "timeofday": "time of day",
    "policyid": "policy id",
    "claimid": "claim id",
}

_PARAPHRASES: dict[str, tuple[str, ...]] = {
    "person": ("people", "person name", "name of a person", "human", "individual", "per"),
    "location": ("place", "place name", "where", "geographic location", "loc", "site"),
    "organization": ("organisation", "company or institution", "org", "institution", "group of people"),
    "company name": ("company", "business", "firm", "name of the company"),
    "corporation": ("company", "business", "firm"),
    "miscellaneous name": ("misc", "other name", "other entity", "miscellaneous"),
    "city": ("town", "city name", "name of the city"),
    "country": ("nation", "country name", "state"),
    "date": ("day", "calendar date", "when", "day or date"),
    "time": ("clock time", "when", "time of day", "point in time"),
    "duration": ("length of time", "how long", "time span", "period"),
    "number": ("numeral", "figure", "quantity", "numeric value", "count"),
    "amount": ("quantity", "how much", "value"),
    "quantity": ("amount", "how many", "number of items"),
    "count": ("how many", "number of items", "quantity"),
    "unit": ("unit of measurement", "measurement unit"),
    "value": ("number", "measured value", "numeric value"),
    "measurement": ("measured quantity", "measure", "value with unit"),
    "temperature": ("degrees", "how hot", "temp"),
    "cost": ("price", "amount of money", "how expensive"),
    "price range": ("cost", "how expensive", "price"),
    "drug": ("medication", "medicine", "pharmaceutical", "drug name"),
    "drug name": ("drug", "substance", "narcotic"),
    "disease": ("illness", "disorder", "medical condition"),
    "condition": ("medical condition", "disease or symptom", "illness"),
    "symptom": ("sign of illness", "complaint"),
    "adverse effect": ("side effect", "adverse reaction", "unwanted effect"),
    "adverse drug reaction": ("side effect", "adverse effect"),
    "dosage": ("dose", "amount of the drug"),
    "route": ("route of administration", "how the drug is given"),
    "procedure": ("medical procedure", "treatment", "intervention"),
    "gene": ("gene name", "genetic locus"),
    "protein": ("protein name", "gene product"),
    "protein or gene": ("gene or protein", "gene", "protein"),
    "gene or protein name": ("gene", "protein", "gene or protein"),
    "species": ("organism", "animal or plant", "living being"),
    "organism taxon": ("organism", "species", "taxon"),
    "chemical entity": ("chemical", "compound", "substance"),
    "chemical": ("chemical substance", "compound", "substance"),
    "material": ("substance", "material name", "chemical compound"),
    "reagent": ("chemical", "substance used", "ingredient"),
    "device": ("equipment", "instrument", "apparatus", "gadget"),
    "operation": ("action", "process step", "what is done"),
    "action": ("operation", "step", "what is done"),
    "method": ("technique", "procedure", "approach"),
    "software": ("program", "application", "software product"),
    "application": ("software", "program", "app"),
    "library": ("software library", "package", "code library"),
    "language": ("programming language", "language name"),
    "version": ("version number", "release"),
    "file name": ("file", "name of a file", "path"),
    "malware": ("malicious software", "virus", "malware name"),
    "vulnerability": ("security hole", "weakness", "cve"),
    "system": ("operating system or software", "computer system"),
    "author": ("writer", "name of the author", "by whom"),
    "title": ("name of the work", "work title", "headline"),
    "journal": ("periodical", "magazine", "journal name"),
    "publisher": ("publishing house", "press"),
    "publication date": ("year", "date of publication", "when published"),
    "pages": ("page numbers", "page range"),
    "url": ("web address", "link", "website"),
    "address": ("street address", "postal address", "where someone lives"),
    "street name": ("street", "road", "road name"),
    "zip code": ("postal code", "postcode", "zip"),
    "postal code": ("zip code", "postcode", "zip"),
    "phone number": ("telephone", "telephone number", "contact number"),
    "email address": ("email", "e mail", "mail address"),
    "name": ("person name", "full name", "who"),
    "first name": ("given name", "forename"),
    "surname": ("last name", "family name"),
    "given name": ("first name", "forename"),
    "booking people": ("number of guests", "party size", "how many people"),
    "booking time": ("reservation time", "time of the booking"),
    "booking date": ("reservation date", "day of the booking"),
    "restaurant name": ("restaurant", "place to eat"),
    "movie name": ("film", "movie title", "movie"),
    "artist": ("musician", "singer", "band or singer"),
    "album": ("record", "music album"),
    "genre": ("kind", "style", "category"),
    "food item": ("dish", "food", "meal"),
    "food ingredient": ("ingredient", "foodstuff", "food"),
    "food": ("dish", "foodstuff", "something to eat"),
    "drink": ("beverage", "something to drink"),
    "fashion brand": ("brand", "clothing label", "brand name"),
    "product": ("product name", "item for sale", "brand product"),
    "event": ("happening", "event name", "occasion"),
    "facility": ("building", "structure", "premises"),
    "vehicle": ("means of transport", "car or ship", "vehicle name"),
    "organisation": ("organization", "institution", "company"),
    "institution": ("university", "organization", "institute"),
    "research task": ("task", "problem studied"),
    "evaluation metric": ("metric", "measure of quality"),
    "dataset name": ("dataset", "corpus", "benchmark"),
    "job skill": ("skill", "ability", "competence"),
    "job knowledge": ("knowledge", "expertise", "field of knowledge"),
    "financial indicator": ("financial figure", "key performance indicator", "kpi"),
    "person actor": ("actor", "actress", "film actor"),
    "person politician": ("politician", "political leader", "statesman"),
    "person other": ("other person", "person"),
    "location gpe": ("country, city or state", "geopolitical entity", "gpe"),
    "organization other": ("other organization", "organization"),
    "organization company": ("company", "business", "firm"),
    "creative work": ("film, book or song", "title of a work", "work of art"),
    "group": ("band or team", "group of people", "club"),
    "cell type": ("kind of cell", "cells"),
    "cell line": ("cultured cells", "cell culture line"),
    "rock formation name": ("geological formation", "rock unit", "formation"),
    "geological age": ("geological period", "era", "epoch"),
}

_TEMPLATES = ("{}s", "{} name", "name of the {}", "type of {}", "the {}", "a {}", "{} mention", "any {}")
_EMPTY_NAMES = ("label {}", "class {}", "type {}", "entity {}", "tag {}", "{}", "l {}", "category {}")


def plain_name(label: str) -> str:
    """Return a label as plain words, with the compounds of published label sets taken apart.

    >>> plain_name("art-broadcastprogram"), plain_name("timeRange"), plain_name("ORG")
    ('art broadcast program', 'time range', 'organization')
    """
    return " ".join(_COMPOUNDS.get(word, word) for word in readable(label).split())


def paraphrase(label: str, rng: random.Random) -> str:
    """Return the name of a label, unchanged or paraphrased at random."""
    name = plain_name(label)
    if rng.random() < 0.6:
        return readable(label) if rng.random() < 0.2 else name
    paraphrases = _PARAPHRASES.get(readable(label)) or _PARAPHRASES.get(name)
    if paraphrases and rng.random() < 0.6:
        return rng.choice(paraphrases)
    words = name.split()
    if len(words) > 1 and rng.random() < 0.5:
        shortened = words[1:] if rng.random() < 0.6 else [word for word in words if rng.random() < 0.7]
        return " ".join(shortened) or name
    return rng.choice(_TEMPLATES).format(name) if rng.random() < 0.7 else name[:4].strip()


def empty_names(count: int, rng: random.Random) -> list[str]:
    """Return uninformative names, such as ``label 3``."""
    template = rng.choice(_EMPTY_NAMES)
    start = rng.randrange(3)
    return [
        template.format(number + start if rng.random() < 0.8 else "abcdefghijkl"[number % 12])
        for number in range(count)
    ]
