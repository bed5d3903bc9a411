"""A handful of agents to look for."""

from __future__ import annotations

from aios_nb.index.documents import Document

AGENTS = {
    "fx": Document(
        "currency-converter", "Exchange rates", "Converts money between countries.", ("finance",)
    ),
    "rain": Document("skycast", "Skycast", "Rain, wind and temperature for any town.", ("meteo",)),
    "train": Document("train-tickets", "Train tickets", "Fares of European railways.", ("travel",)),
    "hotel": Document("pillowcase", "Pillowcase", "Hotel rooms for the night.", ("travel",)),
    "pdf": Document("PDFReader", "", "Reads scanned pages.", ("ocr", "text")),
    "zh": Document("huilv", "汇率换算", "把一种货币换算成另一种货币", ("金融",)),
    "ja": Document("tenki", "天気予報", "東京の明日の天気を教えます", ("天気",)),
    "de": Document("uebersetzer", "Übersetzer", "Übersetzt Texte ins Französische.", ("sprache",)),
}
