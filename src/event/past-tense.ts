/*
 * English past forms, as far as names of events need them. A dictionary would be slower and never complete; what is
 * missing here can be named under a rule of one's own (`names: (name) => …`).
 */

// Past forms that are not also the verb itself: a name may carry them anywhere after its first word.
const IRREGULAR = words(`
  arisen awoken beaten begun bent bitten bled blown born borne bought bound bred broken brought built burnt
  caught chosen clung dealt done drawn dreamt driven drunk dug eaten fallen fed felt flown fled forbidden foreseen
  forgiven forgotten forsaken fought found foregone foretold frozen given gone gotten got grown heard held hidden hung
  inlaid kept knelt known laid lain learnt led left lent lit lost made meant met mislaid misled misread mistaken
  misunderstood outdone outgrown overdone overdrawn overheard overpaid overridden overseen overtaken
  overthrown overwritten paid prepaid proven rebuilt redone redrawn regrown relaid remade repaid resold resent
  retaken retold rethought rewound rewritten ridden risen rung said sat sawn seen sent sewn shaken shaven shod shone
  shorn shot shown shrunk slain slept slid smelt sold sought sown sped spelt spent spilt spoken sprung spun stolen stood
  stricken struck stuck stung sung sunk swept sworn swollen swum swung taken taught thought thrown told torn trodden
  undergone undertaken understood underwritten undone unbound unfrozen unwound upheld withdrawn withheld withstood woken
  won worn wound woven written
  awoke began bit blew broke came chose drew drove fell flew forgot froze gave grew hid knew overran overrode overtook
  ran rang rose sang sank shook shrank spoke sprang stole swam swore threw took tore undertook underwent went withdrew
  woke wore wrote
`)

// Past forms spelt like the verb or a noun ("Reset", "Set"): past only at the end, or before a word like "By".
const AMBIGUOUS = words(`
  become bet bid broadcast burst bust cast come cost cut fit forecast hit hurt input knit let offset output overcome overset preset put quit read
  reread rerun reset rid run set shed shut slit split spread sublet thrust typeset undercut upset wed wet
`)

const FOLLOWERS = words(`
  after again as at before by down due during for from in into of off on out over through to under until up via with
  without
`)

// Verbs and nouns that end in -ed without being past. Words in -eed are not past either, but for the second list.
const NOT_PAST = words(`
  bed embed flatbed hotbed hundred imbed infrared kindred moped naked red sacred seabed shred sled testbed ted
  watershed wicked zed biped coed med
`)
const PAST_IN_EED = words('agreed decreed disagreed filigreed freed guaranteed pedigreed refereed')

const WORD = /[A-Z]+(?![a-z])|[A-Z][a-z]*|[0-9]+/g
const CAPITALISED = /^[A-Z][a-z]+$/

/** True when the last word, or one after the first, is a past form: `OrderPlaced`, `PaymentFailedFinal`. */
export function saysWhatHappened(pascalCaseName: string): boolean {
  const found = pascalCaseName.match(WORD) ?? []
  return found.some((word, index) => {
    const isLast = index === found.length - 1
    // A past form that comes first is an adjective ("ClosedAccount"), unless it is the whole name.
    if (index === 0 && !isLast) return false
    return CAPITALISED.test(word) && isPast(word.toLowerCase(), found[index + 1]?.toLowerCase())
  })
}

function isPast(word: string, next: string | undefined): boolean {
  if (IRREGULAR.has(word)) return true
  if (AMBIGUOUS.has(word)) return next === undefined || FOLLOWERS.has(next)
  if (!word.endsWith('ed') || word.length < 4 || NOT_PAST.has(word)) return false
  return !word.endsWith('eed') || PAST_IN_EED.has(word)
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
