import { walkXml } from './xml.ts'
import type { Zip } from './zip.ts'

/** Counts the items of the lists of a Word document. */
export interface Numbering {
  /** The number of the next item at a depth of a list; `undefined` where its items have bullets. */
  next(list: string, depth: number): number | undefined
}

/** Reads how the lists of a document are numbered (ECMA-376, part 1, section 17.9). */
export async function readNumbering(zip: Zip, part: string | undefined): Promise<Numbering> {
  /** Number formats per depth, by definition; below, the definition of each list. */
  const formats = new Map<string, string[]>()
  const definitions = new Map<string, string>()
  if (part !== undefined && zip.has(part)) {
    let format: string[] = []
    let depth = 0
    let list = ''
    await walkXml(zip.read(part), {
      open: (name, { abstractNumId = '', numId = '', ilvl = '', val = '' }) => {
        if (name === 'abstractNum') {
          format = []
          formats.set(abstractNumId, format)
        } else if (name === 'lvl') depth = Math.min(8, Number(ilvl) || 0)
        else if (name === 'numFmt') format[depth] = val
        else if (name === 'num') {
          list = numId
          // Overrides of a list mostly change only its start number.
          format = []
        } else if (name === 'abstractNumId') definitions.set(list, val)
      },
    })
  }
  const counts = new Map<string, number[]>()
  return {
    next: (list, depth) => {
      const format = formats.get(definitions.get(list) ?? '')?.[depth]
      if (format === undefined || format === 'bullet' || format === 'none') return undefined
      const count = counts.get(list) ?? []
      counts.set(list, count)
      count[depth] = (count[depth] ?? 0) + 1
      // Items further in begin anew.
      count.length = depth + 1
      return count[depth]
    },
  }
}
