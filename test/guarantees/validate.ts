import type { Fact } from './history.ts'
import { collectStreams, type Stream, type Told, type Written } from './streams.ts'

/**
 * The guarantees, each as a check of what was seen (docs/guarantees.md says them in words):
 *
 * - V0 (G2): nothing takes for ever: an answer, an acknowledgement, the news of a write, an end.
 * - V1 (G1): on a stream of 2026-07-28 the acknowledgement comes first, and once.
 * - V2 (G2, G6): every write after an acknowledgement is told, or the stream ends.
 * - V3 (G3): a read that begins after it was told is not older than what was told.
 * - V4 (G4): nothing is told, listed or read that was not asked for or may not be seen.
 * - V5: what is read was written, as a whole, and before.
 * - V6 (G5): who reads whenever it is told knows the last version of everything in the end.
 * - V7 (G12): what does not come or go is in every list exactly once.
 * - V8 (G3): for one client, time goes forwards.
 * - V9 (G10): a service that ends ends its streams with their result, and nothing comes behind it.
 * - V10 (G9): nothing remains of clients that have gone.
 */
export type Check = 'V0' | 'V1' | 'V2' | 'V3' | 'V4' | 'V5' | 'V6' | 'V7' | 'V8' | 'V9' | 'V10'

export interface Violation {
  readonly check: Check
  readonly text: string
}

export interface Rules {
  /** Whether a principal may see what is at a URI. */
  readonly maySee: (principal: string, uri: string) => boolean
  /** Whether the URI of a directory stands for another, as a stream spells it. */
  readonly covers: (asked: string, uri: string) => boolean
  /** Whether it is there from the beginning to the end. */
  readonly isStable: (uri: string) => boolean
  /** Whether the sources tell of each write once, and of nothing else. */
  readonly exact: boolean
}

type Report = (check: Check, text: string) => void

export function validate(facts: readonly Fact[], rules: Rules): readonly Violation[] {
  const violations: Violation[] = []
  const report: Report = (check, text) => void violations.push({ check, text })
  const seen = collectStreams(facts, rules)
  for (const stream of seen.streams.values()) {
    checkOrder(stream, report)
    checkTold(stream, seen.quiets, facts.length, report)
    checkAsked(stream, rules, report)
    if (rules.exact) checkNoise(stream, seen, report)
  }
  checkReads(facts, rules, seen, report)
  checkKnowledge(facts, seen, report)
  for (const fact of facts) checkOne(fact, facts, rules, seen, report)
  return violations
}

export type Seen = ReturnType<typeof collectStreams>

/** V1, and what V9 says of the end. */
function checkOrder(stream: Stream, report: Report): void {
  const first = Math.min(...stream.toldAt)
  if (stream.modern && first < stream.acknowledged)
    report('V1', `stream ${stream.id} was told something at ${first}, before it was acknowledged`)
  if (stream.acks > 1 && stream.modern) report('V1', `stream ${stream.id} was acknowledged ${stream.acks} times`)
  if (stream.modern && stream.how === 'result' && stream.ended < stream.acknowledged)
    report('V1', `stream ${stream.id} ended with its result before it was acknowledged`)
  const late = stream.toldAt.find((at) => at > stream.ended)
  if (late !== undefined) report('V9', `stream ${stream.id} ended at ${stream.ended} and was told something at ${late}`)
}

/** V2: at every quiet moment, and at the end, the last write is told; so every one before it is. */
function checkTold(stream: Stream, quiets: Seen['quiets'], end: number, report: Report): void {
  const moments = quiets.filter(({ streams }) => streams.has(stream.id)).map(({ at }) => at)
  if (stream.ended === Number.POSITIVE_INFINITY) moments.push(end)
  for (const [name, told] of [...stream.told, ['the list', stream.list] as const]) {
    for (const moment of moments) {
      if (told.acknowledged > moment || told.left < moment) continue
      const last = told.writes.findLast(({ at }) => at > told.acknowledged && at < moment)
      if (last === undefined || told.updates.some((at) => at > last.at && at < moment)) continue
      report('V2', `stream ${stream.id} was not told of ${name}, written at ${last.at}, by ${moment}`)
      break
    }
  }
}

/** V4, as far as it is about what a stream is told. */
function checkAsked(stream: Stream, rules: Rules, report: Report): void {
  for (const [uri, told] of stream.told) {
    const [first] = told.updates
    if (told.asked === Number.POSITIVE_INFINITY && (first !== undefined || told.acknowledged < told.asked))
      report('V4', `stream ${stream.id} never asked for ${uri}`)
    else if (first !== undefined && first < told.asked)
      report('V4', `stream ${stream.id} was told of ${uri} at ${first}, before it asked`)
    if ((first !== undefined || told.acknowledged < Number.POSITIVE_INFINITY) && !told.allowed(rules, stream))
      report('V4', `stream ${stream.id} of ${stream.principal} heard of ${uri}, which it may not see`)
    const late = told.updates.find((at) => at > told.gone)
    if (late !== undefined) report('V4', `stream ${stream.id} was told of ${uri} at ${late}, after it had left`)
  }
  if (stream.list.asked === Number.POSITIVE_INFINITY && stream.list.updates.length > 0)
    report('V4', `stream ${stream.id} never asked for the list`)
}

/** V4 where sources are exact: nobody is told more often than something happened that they may see. */
function checkNoise(stream: Stream, seen: Seen, report: Report): void {
  for (const [name, told] of [...stream.told, ['the list', stream.list] as const]) {
    for (const [index, at] of told.updates.entries()) {
      const since = seen.settledBefore(stream, at)
      if (since === undefined) continue
      const times = index + 1 - countBefore(told.updates, since)
      if (times <= writesBetween(told, since, at).length) continue
      report('V4', `stream ${stream.id} was told of ${name} at ${at} though nothing had happened`)
      break
    }
  }
}

/** V3, V5 and V8. */
function checkReads(facts: readonly Fact[], rules: Rules, seen: Seen, report: Report): void {
  const newest = new Map<string, { readonly at: number; readonly version: number }[]>()
  for (const [at, fact] of facts.entries()) {
    if (fact.kind !== 'read') continue
    const { client, uri, started } = fact
    const writes = seen.writes.get(uri) ?? []
    const version = fact.version === 'absent' ? lastAbsent(writes, at) : fact.version
    const wasWritten = writes.some((write) => write.version === version && write.at < at)
    // Only what was never there is absent without having been removed.
    const neverWas = version === -1 && !writes.some((write) => write.at < started)
    if (version === 'torn' || !(wasWritten || neverWas)) {
      report('V5', `client ${client} read ${uri} at ${at} as ${fact.version}, which nobody wrote`)
      continue
    }
    const bound = Math.max(
      -1,
      ...[...seen.streams.values()]
        .filter((stream) => stream.client === client)
        .map((stream) => promised(stream, uri, started, rules, seen)),
    )
    if (version < bound)
      report('V3', `client ${client} read ${uri} from ${started} to ${at} as ${version}, having been told of ${bound}`)
    const key = `${client} ${uri}`
    const before = newest.get(key) ?? []
    const older = before.find((read) => read.at < started && read.version > version)
    if (older !== undefined)
      report('V8', `client ${client} read ${uri} as ${older.version} at ${older.at}, and then as ${version} at ${at}`)
    newest.set(key, [...before, { at, version }])
  }
}

/** The version that a stream has promised for reads that begin at a time: the newest that it has certainly told of. */
function promised(stream: Stream, uri: string, started: number, rules: Rules, seen: Seen): number {
  const told = stream.told.get(uri)
  if (told === undefined || told.left < started) return -1
  let bound = -1
  const quiet = seen.quiets.findLast(({ at, streams }) => at < started && streams.has(stream.id))
  if (quiet !== undefined)
    bound = told.writes.findLast(({ at }) => at > told.acknowledged && at < quiet.at)?.version ?? -1
  const since = rules.exact ? seen.settledBefore(stream, started) : undefined
  if (since === undefined) return bound
  // Each notification tells of at least one more write, in their order.
  const times = countBefore(told.updates, started) - countBefore(told.updates, since)
  if (times === 0) return bound
  return Math.max(bound, writesBetween(told, since, started)[times - 1]?.version ?? -1)
}

/** V6. */
function checkKnowledge(facts: readonly Fact[], seen: Seen, report: Report): void {
  const last = seen.quiets.at(-1)
  if (last === undefined) return
  const read = new Map<string, number>()
  for (const [at, fact] of facts.entries()) {
    if (fact.kind !== 'read' || fact.version === 'torn') continue
    const version = fact.version === 'absent' ? lastAbsent(seen.writes.get(fact.uri) ?? [], at) : fact.version
    read.set(`${fact.client} ${fact.uri}`, version)
  }
  for (const id of last.streams) {
    const stream = seen.streams.get(id)
    for (const uri of stream?.follows ?? []) {
      const told = stream?.told.get(uri)
      if (told === undefined || told.acknowledged > last.at || told.left < last.at) continue
      const known = read.get(`${stream?.client} ${uri}`)
      const written = seen.writes.get(uri)?.findLast(({ at }) => at < last.at)?.version
      if (written !== undefined && known !== written)
        report('V6', `client ${stream?.client} follows ${uri} and knows ${known}; the last is ${written}`)
    }
  }
}

/** V4, V7, V9 and V10, where a fact speaks for itself. */
function checkOne(fact: Fact, facts: readonly Fact[], rules: Rules, seen: Seen, report: Report): void {
  if (fact.kind === 'overdue') report('V0', `${fact.what} did not come in time (${facts.indexOf(fact)})`)
  if (fact.kind === 'stray') report('V4', `client ${fact.client} got ${fact.text}`)
  if (fact.kind === 'remains' && fact.count > 0) report('V10', `${fact.count} × ${fact.what} remain`)
  if (fact.kind === 'list') {
    const listed = new Set(fact.uris)
    if (listed.size < fact.uris.length) report('V7', `client ${fact.client} was listed something twice`)
    const hidden = fact.uris.find((uri) => !rules.maySee(fact.principal, uri))
    if (hidden !== undefined) report('V4', `client ${fact.client} was listed ${hidden}, which it may not see`)
    const missing = [...seen.writes.keys()].find(
      (uri) => rules.isStable(uri) && rules.maySee(fact.principal, uri) && !listed.has(uri),
    )
    if (missing !== undefined) report('V7', `client ${fact.client} was not listed ${missing}`)
  }
  if (fact.kind === 'closing') {
    const at = facts.indexOf(fact)
    for (const id of fact.streams) {
      const stream = seen.streams.get(id)
      if (stream?.how !== 'result' || stream.ended < at)
        report('V9', `stream ${id} ended with ${stream?.how}, not with its result`)
    }
  }
}

/** The version of the last time that it went, or of its never having been there. */
function lastAbsent(writes: readonly Written[], before: number): number {
  return writes.findLast(({ at, absent }) => absent && at < before)?.version ?? -1
}

function countBefore(places: readonly number[], end: number): number {
  let low = 0
  let high = places.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((places[middle] ?? 0) < end) low = middle + 1
    else high = middle
  }
  return low
}

function writesBetween({ writes }: Told, from: number, to: number): readonly Written[] {
  return writes.filter(({ at }) => at > from && at < to)
}
