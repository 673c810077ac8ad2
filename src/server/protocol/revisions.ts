/** The protocol revisions that are served, newest first. The first is stateless; the others begin with `initialize`. */
export const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const

export type Revision = (typeof revisions)[number]

/** The revision without sessions, in which every request declares its revision in `_meta`. */
export const modern = '2026-07-28' satisfies Revision

/** The revisions that begin with `initialize`: all that the HTTP+SSE transport of 2024-11-05 serves. */
export const legacyRevisions: readonly Revision[] = revisions.filter((revision) => revision !== modern)

/** The assumed revision of a request that declares none (2025-06-18, basic/transports). */
export const assumed = '2025-03-26' satisfies Revision

export function isRevision(text: unknown): text is Revision {
  return (revisions as readonly unknown[]).includes(text)
}

/** Whether a revision is at least as new as another. Revisions are dates. */
export function since(revision: Revision, first: Revision): boolean {
  return revision >= first
}

/** Whether a revision has JSON-RPC batches: 2025-03-26 requires them, 2025-06-18 removed them. */
export function hasBatches(revision: Revision): boolean {
  return revision <= '2025-03-26'
}
