import { type Signal, signal } from '@preact/signals'
import { defined, objectOf } from '../../../core/kit/object.ts'
import { metaKeys } from '../../../core/meta.ts'
import type { ResourceContent } from '../../../core/view.ts'
import { lastShownVersion, noteShownVersion } from '../state/remembered.ts'
import { requireConnection } from '../state/session.ts'

/** The difference of a text from the one that this browser showed before. */
export interface EarlierDifference {
  /** Time at which the earlier text was shown, in milliseconds since 1970. */
  readonly at: number
  /** A unified diff. Undefined if the server no longer keeps the earlier text, or sends the new text because the diff is longer. */
  readonly diff?: string
  /** Whether the server still keeps the earlier text. */
  readonly isKept: boolean
  readonly isShown: boolean
}

export type EarlierState = Signal<EarlierDifference | undefined>

export const createEarlierState = (): EarlierState => signal<EarlierDifference | undefined>(undefined)

/** Maximum length of a text whose version is stored, in characters. Servers do not keep texts of more than 1,048,576. */
const maxText = 1_000_000

/**
 * Stores the version of a shown text, and sets `state` if the text differs from the one shown before. Does nothing for contents other than
 * one text of at most `maxText` characters, and if the server has no versions.
 */
export async function compareEarlier(
  uri: string,
  contents: readonly ResourceContent[],
  state: EarlierState,
  signal: AbortSignal,
): Promise<void> {
  const [content] = contents
  if (contents.length !== 1 || content === undefined || !('text' in content) || content.text.length > maxText) return
  const { view, server } = requireConnection()
  const before = lastShownVersion(server.name, uri)
  try {
    const deltaUri = `${uri}?since=${encodeURIComponent(before?.version ?? '')}`
    const [answer] = (await view.read(deltaUri, { signal: signal })).contents
    const facts = objectOf(answer?.meta?.[metaKeys.delta])
    if (answer?.version === undefined || facts.state === undefined || signal.aborted) return
    noteShownVersion(server.name, uri, answer.version)
    if (before === undefined || facts.state === 'unchanged' || !('text' in answer)) return
    const diff = facts.state === 'diff' ? answer.text : undefined
    state.value = { at: before.at, isKept: facts.reason !== 'unknown', isShown: false, ...defined({ diff }) }
  } catch {
    // Servers other than hikidashi do not know the parameter `since`.
  }
}
