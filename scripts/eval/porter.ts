/** Porter's stemmer (An algorithm for suffix stripping, Program 14, 1980), for baselines: its rules as they are published. */

const consonants = '[^aeiou][^aeiouy]*'
const vowels = '[aeiouy][aeiou]*'
/** Tests of the measure of a stem: the number of times that vowels are followed by consonants. */
const atLeastOne = new RegExp(`^(?:${consonants})?${vowels}${consonants}`)
const exactlyOne = new RegExp(`^(?:${consonants})?${vowels}${consonants}(?:${vowels})?$`)
const atLeastTwo = new RegExp(`^(?:${consonants})?${vowels}${consonants}${vowels}${consonants}`)
const hasVowel = new RegExp(`^(?:${consonants})?[aeiouy]`)
const isShort = new RegExp(`^${consonants}[aeiouy][^aeiouwxy]$`)

type Rule = readonly [ending: string, instead: string]
const rulesOf = (text: string): readonly Rule[] =>
  text
    .split(' ')
    .map((rule): Rule => [rule.split('>')[0] ?? '', rule.split('>')[1] ?? ''])
    .sort(([a], [b]) => b.length - a.length)

const second = rulesOf(
  'ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous ization>ize ation>ate ator>ate ' +
    'alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble logi>log',
)
const third = rulesOf('icate>ic ative> alize>al iciti>ic ical>ic ful> ness>')
const fourth = rulesOf(
  'al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ou> ism> ate> iti> ous> ive> ize> sion>s tion>t',
)

/** Applies the longest rule that matches the word, if the rest of the word has the measure. */
function replaced(word: string, rules: readonly Rule[], measure: RegExp): string {
  const [ending, instead] = rules.find(([one]) => word.endsWith(one)) ?? ['', '']
  if (ending === '') return word
  const bare = word.slice(0, word.length - ending.length)
  return measure.test(bare + instead.slice(0, /^[st]ion$/.test(ending) ? 1 : 0)) ? bare + instead : word
}

function withoutPast(word: string): string {
  if (word.endsWith('eed')) return atLeastOne.test(word.slice(0, -3)) ? word.slice(0, -1) : word
  const bare = /^(.+)(?:ed|ing)$/.exec(word)?.[1]
  if (bare === undefined || !hasVowel.test(bare)) return word
  if (/(?:at|bl|iz)$/.test(bare) || isShort.test(bare)) return `${bare}e`
  return /([^aeiouylsz])\1$/.test(bare) ? bare.slice(0, -1) : bare
}

/** Returns the stem of a word in lower case. Returns any other word unchanged. */
export function porter(given: string): string {
  if (given.length < 3 || !/^[a-z]+$/.test(given)) return given
  let word = given.replace(/^y/, 'Y')
  if (/(?:ss|i)es$/.test(word)) word = word.slice(0, -2)
  else if (/[^s]s$/.test(word)) word = word.slice(0, -1)
  word = withoutPast(word)
  if (word.endsWith('y') && hasVowel.test(word.slice(0, -1))) word = `${word.slice(0, -1)}i`
  word = replaced(word, second, atLeastOne)
  word = replaced(word, third, atLeastOne)
  word = replaced(word, fourth, atLeastTwo)
  if (word.endsWith('e')) {
    const bare = word.slice(0, -1)
    if (atLeastTwo.test(bare) || (exactlyOne.test(bare) && !isShort.test(bare))) word = bare
  }
  if (word.endsWith('ll') && atLeastTwo.test(word)) word = word.slice(0, -1)
  return word.toLowerCase()
}
