import type { MountConfig } from './schema.ts'

/** Whether access rules make a difference between the paths of a mount. */
export function hidesPaths(access: NonNullable<MountConfig['access']>): boolean {
  return access.some(({ match }) => match !== undefined)
}
