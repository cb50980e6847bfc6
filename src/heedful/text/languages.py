"""ISO 639 language codes: the two-letter codes of part 1, the three-letter codes of part 2, and some of part 3."""

import re
from difflib import get_close_matches

from heedful.errors import InputError
from heedful.wording import did_you_mean

_NAMES = """
aa Afar, ab Abkhazian, ae Avestan, af Afrikaans, ak Akan, am Amharic, an Aragonese, ar Arabic, as Assamese,
av Avaric, ay Aymara, az Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, bh Bihari, bi Bislama, bm Bambara,
bn Bengali, bo Tibetan, br Breton, bs Bosnian, ca Catalan, ce Chechen, ch Chamorro, co Corsican, cr Cree, cs Czech,
cu Church Slavic, cv Chuvash, cy Welsh, da Danish, de German, dv Divehi, dz Dzongkha, ee Ewe, el Greek, en English,
eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, ff Fulah, fi Finnish, fj Fijian, fo Faroese,
fr French, fy Western Frisian, ga Irish, gd Gaelic, gl Galician, gn Guarani, gu Gujarati, gv Manx, ha Hausa,
he Hebrew, hi Hindi, ho Hiri Motu, hr Croatian, ht Haitian, hu Hungarian, hy Armenian, hz Herero, ia Interlingua,
id Indonesian, ie Interlingue, ig Igbo, ii Sichuan Yi, ik Inupiaq, io Ido, is Icelandic, it Italian, iu Inuktitut,
ja Japanese, jv Javanese, ka Georgian, kg Kongo, ki Kikuyu, kj Kuanyama, kk Kazakh, kl Kalaallisut, km Khmer,
kn Kannada, ko Korean, kr Kanuri, ks Kashmiri, ku Kurdish, kv Komi, kw Cornish, ky Kirghiz, la Latin,
lb Luxembourgish, lg Ganda, li Limburgan, ln Lingala, lo Lao, lt Lithuanian, lu Luba-Katanga, lv Latvian,
mg Malagasy, mh Marshallese, mi Maori, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese,
my Burmese, na Nauru, nb Norwegian Bokmål, nd North Ndebele, ne Nepali, ng Ndonga, nl Dutch, nn Norwegian Nynorsk,
no Norwegian, nr South Ndebele, nv Navajo, ny Chichewa, oc Occitan, oj Ojibwa, om Oromo, or Oriya, os Ossetian,
pa Panjabi, pi Pali, pl Polish, ps Pushto, pt Portuguese, qu Quechua, rm Romansh, rn Rundi, ro Romanian,
ru Russian, rw Kinyarwanda, sa Sanskrit, sc Sardinian, sd Sindhi, se Northern Sami, sg Sango, si Sinhala,
sk Slovak, sl Slovenian, sm Samoan, sn Shona, so Somali, sq Albanian, sr Serbian, ss Swati, st Southern Sotho,
su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog,
tn Tswana, to Tonga, tr Turkish, ts Tsonga, tt Tatar, tw Twi, ty Tahitian, ug Uighur, uk Ukrainian, ur Urdu,
uz Uzbek, ve Venda, vi Vietnamese, vo Volapük, wa Walloon, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, za Zhuang,
zh Chinese, zu Zulu
"""
NAMES = {code: name for code, _, name in (entry.strip().partition(" ") for entry in _NAMES.split(","))}  # in English
_CODES = {name.casefold(): code for code, name in NAMES.items()}

_THREE_LETTERS = """
aar abk ace ach ada ady afa afh afr ain aka akk alb ale alg als alt amh ang anp apa ara arb arc arg arm arn arp
art arw ary arz asm ast ath aus ava ave awa aym aze azj bad bai bak bal bam ban baq bas bat bej bel bem ben ber
bho bih bik bin bis bla bnt bod bos bra bre btk bua bug bul bur byn cad cai car cat cau ceb cel ces cha chb che
chg chi chk chm chn cho chp chr chu chv chy ckb cmc cmn cnr cop cor cos cpe cpf cpp cre crh crp csb cus cym cze
dak dan dar day del den deu dgr din div doi dra dsb dua dum dut dyu dzo efi egy eka ekk ell elx eng enm epo est
eus ewe ewo fan fao fas fat fij fil fin fiu fon fra fre frm fro frr frs fry ful fur gaa gay gaz gba gem geo ger
gez gil gla gle glg glv gmh goh gon gor got grb grc gre grn gsw guj gwi hai hak hat hau haw heb her hil him hin
hit hmn hmo hne hrv hsb hun hup hye iba ibo ice ido iii ijo iku ile ilo ina inc ind ine inh ipk ira iro isl ita
jav jbo jpn jpr jrb kaa kab kac kal kam kan kar kas kat kau kaw kaz kbd kha khi khk khm kho kik kin kir kmb kmr
kok kom kon kor kos kpe krc krl kro kru kua kum kur kut lad lah lam lao lat lav lez lim lin lit lol loz ltz lua
lub lug lui lun luo lus lvs mac mad mag mah mai mak mal man mao map mar mas may mdf mdr men mga mic min mkd mkh
mlg mlt mnc mni mno moh mon mos mri msa mun mus mwl mwr mya myn myv nah nai nan nap nau nav nbl nde ndo nds nep
new nia nic niu nld nno nob nog non nor npi nqo nso nub nwc nya nym nyn nyo nzi oci oji ori orm ory osa oss ota
oto paa pag pal pam pan pap pau pbt peo per pes phi phn pli pol pon por pra pro prs pus que quy raj rap rar roa
roh rom ron rum run rup rus sad sag sah sai sal sam san sas sat scn sco sel sem sga sgn shn sid sin sio sit sla
slk slo slv sma sme smi smj smn smo sms sna snd snk sog som son sot spa sqi srd srn srp srr ssa ssw suk sun sus
sux swa swe swh syc syr tah tai tam tat tel tem ter tet tgk tgl tha tib tig tir tiv tkl tlh tli tmh tog ton tpi
tsi tsn tso tuk tum tup tur tut tvl twi tyv udm uga uig ukr umb urd uzb uzn vai ven vie vol vot wak wal war was
wel wen wln wol wuu xal xho yao yap yid yor ypk yue zap zbl zen zgh zha zho znd zsm zul zun zza
"""
THREE_LETTERS = frozenset(_THREE_LETTERS.split())

# Country codes and names that people write instead of a language code, and for which the most similar English name
# would suggest the wrong language.
_SLIPS = """
cn zh, cz cs, dk da, gr el, jp ja, ua uk, 中文 zh, 汉语 zh, mandarin zh, 日本語 ja, 한국어 ko, русский ru, deutsch de,
español es, français fr, italiano it, português pt
"""
SLIPS = {slip: code for slip, _, code in (entry.strip().partition(" ") for entry in _SLIPS.split(","))}

CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")  # the optional parts are a script, a region or a variant

CHINESE = ("zh", "zho", "chi", "cmn")


def base_language(code: str) -> str:
    """Return the language in a code, without any script or region: "zh" for "zh-Hans" and "ZH_tw"."""
    return code.lower().replace("_", "-").split("-")[0]


def is_language(code: str) -> bool:
    """Return True if a code is an ISO 639 language code, alone or with a script or region."""
    base = base_language(code)
    return CODE.fullmatch(code) is not None and (base in NAMES or base in THREE_LETTERS)


def language_called(name: str) -> str | None:
    """Return the code of a language by its name, such as "de" for German or Deutsch, or None if it is unknown."""
    key = name.strip().casefold()
    return SLIPS.get(key) or _CODES.get(key)


def check_language(code: str, name: str) -> None:
    """Check that a code is an ISO 639 language code. `name` is its key or option, for the error."""
    if is_language(code):
        return
    key = code.casefold()
    near = get_close_matches(key, _CODES, n=1)
    guess = SLIPS.get(key) or (_CODES[near[0]] if near else None)
    hint = did_you_mean([guess]) if guess else "give one such as en, de or zh"
    raise InputError(f'{name}: "{code}" is not an ISO 639 language code; {hint}')
