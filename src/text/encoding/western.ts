/** Below this nothing that follows makes it a text of western Europe. */
const hopeless = -100

/**
 * How much a text in Windows-1252 looks like one of western Europe: for each character beyond ASCII, by itself and its
 * neighbours, the logarithm of how much more likely it is than by chance. Almost any bytes can be read as Windows-1252, so
 * its characters have to be where they belong.
 */
export function westernness(text: string): number {
  let sum = 0
  let previous = ' '
  const letters = new Map<string, number>()
  for (let at = 0; at < text.length && sum > hopeless; at++) {
    const character = text.charAt(at)
    if (character >= '\x80') {
      sum += weigh(character, previous, text.charAt(at + 1) || ' ')
      if (isAccented(character)) {
        const letter = character.toLowerCase()
        letters.set(letter, (letters.get(letter) ?? 0) + 1)
      }
    }
    previous = character
  }
  return sum - strangers(letters)
}

/** The letters beyond ASCII of one language each. */
const alphabets: readonly string[] = [
  'àâæçéèêëîïôœùûüÿ',
  'äöüßé',
  'áéíñóúüïçàèò',
  'áâãàçéêíóôõúü',
  'àèéìíòóùúî',
  'åäöéüà',
  'æøåéèòôó',
  'áéíóúýþæöð',
  'éëïöüèêáóíâ',
]

/**
 * Returns the penalty for letters outside the best-matching alphabet. French and Danish rarely occur in one text; Czech and
 * Hungarian, in the neighbouring code page, look like several languages at once.
 */
function strangers(letters: ReadonlyMap<string, number>): number {
  const all = [...letters.values()].reduce((sum, times) => sum + times, 0)
  const outside = alphabets.map((alphabet) => {
    let count = 0
    for (const [letter, times] of letters) if (!alphabet.includes(letter)) count += times
    return count
  })
  const fewest = Math.min(...outside)
  return all >= 30 && fewest > all * 0.08 ? Number.POSITIVE_INFINITY : 6 * fewest
}

const common = 'éèêëàâáäãåçñóôöòõúüûùíîïìæøßœ'
const capitals = 'ÉÈÊËÀÂÁÄÃÅÇÑÓÔÖÒÕÚÜÛÙÍÎÏÌÆØŒ'
/** Icelandic letters, and letters that Turkish and Slavic letters look like in this code page: no evidence. */
const rare = 'ðþýÿšžÐÞÝŠŽŸ'

function weigh(character: string, previous: string, next: string): number {
  const before = isLetter(previous)
  const after = isLetter(next)
  const crowded = previous >= '\x80' && isAccented(previous) ? -3.5 : 0
  if (common.includes(character)) {
    // à, é and ó are words of their own.
    if (!before && !after) return ('àéèóô'.includes(character) ? 1 : -3) + crowded
    // A capital letter is not directly after a small letter, nor directly before one that follows it.
    return (/[A-Z]/.test(previous) && /[A-Z]/.test(next) ? -3 : 2) + crowded
  }
  if (capitals.includes(character)) return (/[a-zß-ÿ]/.test(previous) ? -5 : after || before ? 1.5 : -1) + crowded
  if (rare.includes(character)) return (before || after ? 0 : -3) + crowded
  switch (character) {
    case '’':
      return before ? 2.5 : -1
    case '“':
    case '„':
    case '‘':
      return !before && (after || /\d/.test(next)) ? 2.5 : -2
    case '”':
      return /[\w.,!?)’é]/.test(previous) && !after ? 2.5 : -2
    case '«':
    case '»':
    case '‹':
    case '›':
      return before !== after || /[\s\xa0]/.test(previous) !== /[\s\xa0]/.test(next) ? 2 : -2
    case '–':
    case '—':
    case '…':
      return before || /[\s\d]/.test(previous) ? 1.5 : -1
    case '¿':
    case '¡':
      return !before && after ? 2.5 : -3
    case '°':
    case '²':
    case '³':
    case '½':
      return /\d|[a-z]/.test(previous) && !after ? 1 : -2
    case '€':
    case '£':
    case '§':
    case '©':
    case '®':
    case '™':
    case '•':
    case '·':
    case '±':
    case 'µ':
    case '×':
      return before && after ? -3 : /[\s\d(\n]/.test(previous) ? 1 : 0
    case 'ª':
    case 'º':
      return /[\d.]/.test(previous) ? 1.5 : -2
    case '\xa0':
      // In French it is used before a colon, and inside quotation marks.
      return /[:;?!»%€]/.test(next) || previous === '«' ? 2 : before && after ? 0 : 0.5
    default:
      return -4
  }
}

function isLetter(character: string): boolean {
  return /[a-z]/i.test(character) || isAccented(character)
}

function isAccented(character: string): boolean {
  return (
    (character >= 'À' && character <= 'ÿ' && character !== '×' && character !== '÷') || 'ŒœŠšŽžŸ'.includes(character)
  )
}
