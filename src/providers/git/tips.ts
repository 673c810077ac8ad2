import type { Commits } from './commits.ts'
import { refAt } from './ref-list.ts'
import type { RefTable } from './refs.ts'

/** The shortest names of the refs at each commit. */
export interface Tips {
  at(table: RefTable): Promise<ReadonlyMap<string, readonly string[]>>
}

/** Maximum number of refs shown. */
const maxRefs = 1000

export function createTips(commits: Commits): Tips {
  const known = new WeakMap<RefTable, ReadonlyMap<string, readonly string[]>>()
  return {
    at: async (table) => {
      const found = known.get(table)
      if (found !== undefined) return found
      const marks = new Map<string, string[]>()
      const mark = (commit: string | undefined, name: string) => {
        if (commit === undefined) return
        const names = marks.get(commit)
        if (names === undefined) marks.set(commit, [name])
        else names.push(name)
      }
      if (table.head !== undefined) mark(await commits.at(table.head), 'HEAD')
      const shown = Math.min(table.refs.length, maxRefs)
      const refs = Array.from({ length: shown }, (_, index) => refAt(table.refs, index))
      const ids = await Promise.all(refs.map((ref) => commits.at(ref)))
      for (const [index, { name }] of refs.entries()) mark(ids[index], table.names.shortest(name))
      known.set(table, marks)
      return marks
    },
  }
}
