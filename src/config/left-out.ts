import { resolveFolder } from '../schema/values.ts'
import type { PlannedMount } from './plan.ts'

export type { LeftOut, LeftOutCounts, LeftOutReason } from '../providers/files/index.ts'

/** The served folder of a mount; `undefined` if the mount does not serve a folder. */
export function folderOf({ config, folder }: PlannedMount): string | undefined {
  switch (config.provider) {
    case 'files':
    case 'settings':
    case 'prompts':
      return resolveFolder(config.root, folder)
    default:
      return undefined
  }
}

/**
 * Opens the checker that tells why files of a mount are left out. `undefined` if the mount does not serve a folder.
 *
 * @throws ResourceError `invalid` for a folder that cannot be opened.
 */
export async function openMountLeftOut(planned: PlannedMount) {
  const { config } = planned
  const root = folderOf(planned)
  if (root === undefined) return undefined
  const { openLeftOut } = await import('../providers/files/index.ts')
  switch (config.provider) {
    case 'files':
      return openLeftOut({ ...config, root })
    case 'settings': {
      const { maxBytes: _, dotenv = true, ...options } = config
      return openLeftOut({ ...options, root, dotenv })
    }
    case 'prompts':
      return openLeftOut({ ...config, include: config.include ?? ['**/*.md'], root })
    default:
      return undefined
  }
}
