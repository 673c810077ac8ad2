/** A fact of the history of one client that polls events. `path`: a resource that the client may see and asks for. */
export type EventFact =
  | { readonly kind: 'write'; readonly path: string }
  | { readonly kind: 'poll'; readonly paths: readonly string[]; readonly truncated: boolean }

/**
 * Checks the history of one client: each write is followed by an event of its path, or by a gap, and no event is of anything else.
 * The history ends with polls that had nothing more to return.
 */
export function validateEvents(facts: readonly EventFact[]): readonly string[] {
  const faults: string[] = []
  const written = new Set<string>()
  const open = new Set<string>()
  for (const fact of facts) {
    if (fact.kind === 'write') {
      written.add(fact.path)
      open.add(fact.path)
      continue
    }
    for (const path of fact.paths) {
      if (!written.has(path)) faults.push(`an event of ${path}, which nobody wrote`)
      open.delete(path)
    }
    if (fact.truncated) open.clear()
  }
  for (const path of open) faults.push(`no event and no gap after the last write of ${path}`)
  return faults
}
