/**
 * The stem of an English word in small letters: plurals, `-ed`, `-ing` and a last `e` are taken off, so that `caches`, `cached`
 * and `caching` are the same. It knows no dictionary; what it makes need not be a word. Others are left as they are.
 */
export function stem(given: string): string {
  if (given.length < 4 || !/^[a-z]+$/.test(given)) return given
  const single = singular(given)
  const bare = withoutEnding(single)
  return bare.length > 3 && bare.endsWith('e') ? bare.slice(0, -1) : bare
}

/** Harman's rules (How effective is suffixing?, JASIS 42, 1991). */
function singular(text: string): string {
  if (text.endsWith('ies'))
    return text.length > 4 && !/[ae]ies$/.test(text) ? `${text.slice(0, -3)}y` : text.slice(0, -1)
  if (/(?:ss|x|z|ch|sh)es$/.test(text)) return text.slice(0, -2)
  return /(?:us|ss|is)$/.test(text) || !text.endsWith('s') ? text : text.slice(0, -1)
}

function withoutEnding(text: string): string {
  if (text.endsWith('ied') && text.length > 4) return `${text.slice(0, -3)}y`
  const end = text.endsWith('ing') ? 3 : text.endsWith('ed') ? 2 : 0
  if (end === 0) return text
  const bare = text.slice(0, -end)
  // `need`, `sing` and `string` are words of their own.
  if (bare.length < 3 || bare.endsWith('e') || !/[aeiouy]/.test(bare)) return text
  return /([^aeiouylsz])\1$/.test(bare) ? bare.slice(0, -1) : bare
}
