import { execFileSync } from 'node:child_process'
import { requires, type Suite } from '../../support/require.ts'

/** Returns the command prefix that limits the inotify watches in its own namespace (Linux). */
export const withWatches = (most: number): readonly string[] => [
  ...['unshare', '-Ur', 'sh', '-c'],
  `echo ${most} > /proc/sys/user/max_inotify_watches; exec "$0" "$@"`,
]

/** Returns `describe` for tests that need this limit. */
export function requiresWatchLimit(): Suite {
  const [command = '', ...args] = withWatches(10)
  let can = true
  try {
    execFileSync(command, [...args, 'true'], { stdio: 'ignore' })
  } catch {
    can = false
  }
  return requires('unshare', can, 'no user namespace can be made')
}
