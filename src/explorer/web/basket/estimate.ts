import type { Resource } from '../../../core/view.ts'

/** Estimates the tokens of a resource in full, from its size. `undefined`: unknown. */
export function estimateOf({ size, mimeType = '' }: Resource): number | undefined {
  if (size === undefined) return undefined
  // A context contains only a link to a binary content.
  if (/^(?:image|audio|video|font)\//.test(mimeType)) return 30
  // The size of a document does not show the length of its text.
  if (/pdf|officedocument/.test(mimeType)) return undefined
  return Math.ceil(size / 3.6)
}
