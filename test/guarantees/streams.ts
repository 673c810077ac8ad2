import type { Fact } from './history.ts'
import type { Rules } from './validate.ts'

/** A write, with its place in the history. */
export interface Written {
  readonly at: number
  readonly uri: string
  readonly version: number
  readonly absent: boolean
}

/** All that happened between a stream and one URI (or the list). Places that never came are infinitely late. */
export interface Told {
  asked: number
  acknowledged: number
  left: number
  gone: number
  readonly updates: number[]
  /** The writes that it is about, as far as the principal may see them. */
  readonly writes: readonly Written[]
  allowed(rules: Rules, stream: Stream): boolean
}

export interface Stream {
  readonly id: number
  readonly client: number
  readonly principal: string
  readonly modern: boolean
  readonly opened: number
  readonly told: Map<string, Told>
  readonly list: Told
  readonly follows: Set<string>
  readonly resumed: number[]
  /** When it was told anything at all. */
  readonly toldAt: number[]
  acknowledged: number
  acks: number
  ended: number
  how: 'result' | 'cut' | 'client' | undefined
}

/** Sorts the facts by stream. */
export function collectStreams(facts: readonly Fact[], rules: Rules) {
  const never = Number.POSITIVE_INFINITY
  const streams = new Map<number, Stream>()
  const writes = new Map<string, Written[]>()
  const listed: Written[] = []
  const quiets: { readonly at: number; readonly streams: ReadonlySet<number> }[] = []
  const losses: number[] = []
  for (const [at, fact] of facts.entries()) {
    if (fact.kind === 'lost') losses.push(at)
    if (fact.kind === 'quiet') quiets.push({ at, streams: new Set(fact.streams) })
    if (fact.kind !== 'write') continue
    const { uri, version, absent } = fact
    const written = { at, uri, version, absent }
    writes.set(uri, [...(writes.get(uri) ?? []), written])
    if (fact.listed) listed.push(written)
  }

  const newTold = (about: readonly Written[], allowed: Told['allowed']): Told => ({
    ...{ asked: never, acknowledged: never, left: never, gone: never, updates: [], writes: about, allowed },
  })
  const toldOf = (stream: Stream, uri: string): Told => {
    let told = stream.told.get(uri)
    if (told === undefined) {
      const within = [...writes].filter(([one]) => one !== uri && rules.covers(uri, one)).flatMap(([, all]) => all)
      const visible = [...(writes.get(uri) ?? []), ...within].filter((one) => rules.maySee(stream.principal, one.uri))
      visible.sort((a, b) => a.at - b.at)
      told = newTold(visible, (_, { principal }) => rules.maySee(principal, uri) || visible.length > 0)
      stream.told.set(uri, told)
    }
    return told
  }

  for (const [at, fact] of facts.entries()) {
    if (fact.kind === 'open') {
      const { stream: id, client, principal, modern } = fact
      const about = listed.filter((one) => rules.maySee(principal, one.uri))
      const list = newTold(about, () => true)
      streams.set(id, {
        ...{ id, client, principal, modern, opened: at, list, told: new Map(), follows: new Set(), resumed: [] },
        toldAt: [],
        ...{ acknowledged: never, acks: 0, ended: never, how: undefined },
      })
    }
    if (!('stream' in fact)) continue
    const stream = streams.get(fact.stream)
    if (stream === undefined) throw new Error(`a fact about stream ${fact.stream}, which was never opened`)
    switch (fact.kind) {
      case 'ask':
        for (const uri of fact.uris) toldOf(stream, uri).asked = at
        for (const uri of fact.follows) stream.follows.add(uri)
        if (fact.list) stream.list.asked = at
        break
      case 'ack':
        stream.acks++
        stream.acknowledged = Math.min(stream.acknowledged, at)
        for (const told of fact.uris.map((uri) => toldOf(stream, uri)).concat(fact.list ? [stream.list] : []))
          told.acknowledged = Math.min(told.acknowledged, at)
        break
      case 'left':
      case 'gone':
        toldOf(stream, fact.uri)[fact.kind] = at
        break
      case 'updated':
        toldOf(stream, fact.uri).updates.push(at)
        stream.toldAt.push(at)
        break
      case 'listed':
        stream.list.updates.push(at)
        stream.toldAt.push(at)
        break
      case 'resumed':
        stream.resumed.push(at)
        break
      case 'end':
        stream.ended = at
        stream.how = fact.how
        break
    }
  }

  /**
   * The last moment before a time at which nothing was on its way to a stream; `undefined` where something may have been told
   * again since, or nobody knows.
   */
  const settledBefore = (stream: Stream, time: number): number | undefined => {
    const quiet = quiets.findLast(({ at }) => at < time)
    if (quiet === undefined || !(quiet.streams.has(stream.id) || stream.opened > quiet.at)) return undefined
    const between = (at: number) => at > quiet.at && at < time
    return losses.some(between) || stream.resumed.some(between) ? undefined : quiet.at
  }

  return { streams, writes, quiets, settledBefore }
}
