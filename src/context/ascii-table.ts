/** Offset basis of FNV-1a, as a signed number. */
export const fnvBasis = 0x811c9dc5 | 0
export const fnvPrime = 0x01000193

/** Maximum number of slots examined for one text: texts chosen to have equal hashes would make each look-up slow. */
const maxProbes = 32

/**
 * Numbers short ASCII texts, such as words, from 0: a hash table with open addressing.
 *
 * @param maxTexts At most 65,535.
 * @param maxUnits Maximum length of a text, at most 255.
 * @param onAdd Called with each new text and its number.
 */
export function createTextInterner(maxTexts: number, maxUnits: number, onAdd: (text: string, number: number) => void) {
  const mask = 2 ** Math.ceil(Math.log2(2 * maxTexts)) - 1
  /** The number of the text in a slot, plus 1; 0: the slot is free. */
  const slots = new Uint16Array(mask + 1)
  const letters = new Uint8Array(maxTexts * maxUnits)
  const lengths = new Uint8Array(maxTexts)
  let size = 0

  const isAt = (number: number, text: string, start: number, end: number): boolean => {
    const offset = number * maxUnits - start
    for (let index = start; index < end; index++) if (letters[offset + index] !== text.charCodeAt(index)) return false
    return true
  }

  const add = (slot: number, text: string): number => {
    const number = size++
    slots[slot] = size
    for (let index = 0; index < text.length; index++) letters[number * maxUnits + index] = text.charCodeAt(index)
    lengths[number] = text.length
    onAdd(text, number)
    return number
  }

  return {
    /**
     * Returns the number of a range of a text, and adds a new range. -1: the range is too long, or is new and there is no room for it.
     *
     * @param hash FNV-1a of the range, as a signed number.
     */
    numberOf: (text: string, start: number, end: number, hash: number): number => {
      if (end - start > maxUnits) return -1
      for (let probe = 0; probe < maxProbes; probe++) {
        const slot = (hash + probe) & mask
        const number = (slots[slot] ?? 0) - 1
        if (number < 0) return size < maxTexts ? add(slot, text.slice(start, end)) : -1
        if (lengths[number] === end - start && isAt(number, text, start, end)) return number
      }
      return -1
    },
    isFull: () => size >= maxTexts,
    clear: () => {
      slots.fill(0)
      size = 0
    },
  }
}
