import type { Resource } from '../../../core/view.ts'

/** About how many tokens a resource has in full, by its size alone: to be shown as an estimate. `undefined`: nobody knows. */
export function estimateOf({ size, mimeType = '' }: Resource): number | undefined {
  if (size === undefined) return undefined
  // Of what is no text, a context has a link.
  if (/^(?:image|audio|video|font)\//.test(mimeType)) return 30
  // How much text a document holds, its size does not tell.
  if (/pdf|officedocument/.test(mimeType)) return undefined
  return Math.ceil(size / 3.6)
}
