import type { MountConfig } from './schema.ts'

/** Whether access rules distinguish between paths of a mount. */
export function hidesPaths(access: NonNullable<MountConfig['access']>): boolean {
  return access.some(({ match }) => match !== undefined)
}
