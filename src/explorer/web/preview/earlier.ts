import { type Signal, signal } from '@preact/signals'
import { defined, objectOf } from '../../../core/kit/object.ts'
import { metaKeys } from '../../../core/meta.ts'
import type { ResourceContent } from '../../../core/view.ts'
import { lastShownVersion, noteShownVersion } from '../state/remembered.ts'
import { requireConnection } from '../state/session.ts'

/** The difference of a text from the one that this browser showed before. */
export interface EarlierDifference {
  /** Time at which it was shown, in milliseconds since 1970. */
  readonly at: number
  /** A unified diff. Undefined if the earlier text is no longer kept, or is shorter than the diff. */
  readonly diff?: string
  readonly isKept: boolean
  readonly isShown: boolean
}

export type EarlierState = Signal<EarlierDifference | undefined>

export const createEarlierState = (): EarlierState => signal<EarlierDifference | undefined>(undefined)

/** Maximum length of a text whose version is stored, in characters. Servers keep no longer texts. */
const maxText = 1_000_000

/** Finds out what changed in a shown text since it was shown before, and notes its version. Servers without versions are left alone. */
export async function compareEarlier(
  uri: string,
  contents: readonly ResourceContent[],
  state: EarlierState,
  left: AbortSignal,
): Promise<void> {
  const [content] = contents
  if (contents.length !== 1 || content === undefined || !('text' in content) || content.text.length > maxText) return
  const { view, server } = requireConnection()
  const before = lastShownVersion(server.name, uri)
  try {
    const asked = `${uri}?since=${encodeURIComponent(before?.version ?? '')}`
    const [answer] = (await view.read(asked, { signal: left })).contents
    const facts = objectOf(answer?.meta?.[metaKeys.delta])
    if (answer?.version === undefined || facts.state === undefined || left.aborted) return
    noteShownVersion(server.name, uri, answer.version)
    if (before === undefined || facts.state === 'unchanged' || !('text' in answer)) return
    const diff = facts.state === 'diff' ? answer.text : undefined
    state.value = { at: before.at, isKept: facts.reason !== 'unknown', isShown: false, ...defined({ diff }) }
  } catch {
    // Other servers than hikidashi do not know the parameter `since`.
  }
}
