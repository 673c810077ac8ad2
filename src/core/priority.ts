/** The priority that makes a resource required: an assembled context contains it, regardless of its topic. */
export const requiredPriority = 1

/** The highest priority that documents, or other servers, can give themselves. It is below {@link requiredPriority}. */
const maxClaimedPriority = 0.99

/**
 * Caps a priority that a document or another server claims for itself at {@link maxClaimedPriority}: only the operator of this
 * server can require a resource.
 */
export function claimedPriority(priority: number): number {
  return Math.min(priority, maxClaimedPriority)
}
