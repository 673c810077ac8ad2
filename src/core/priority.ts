/** The priority that makes a resource required: an assembled context holds it, whatever it is about. */
export const requiredPriority = 1

/** The highest priority that contents, or another server, can give themselves. It is below {@link requiredPriority}. */
export const maxClaimedPriority = 0.99

/**
 * A priority that a document or another server claims for itself, capped at {@link maxClaimedPriority}: only the operator of this
 * server requires something.
 */
export function claimedPriority(priority: number): number {
  return Math.min(priority, maxClaimedPriority)
}
