import { execFileSync } from 'node:child_process'
import { requires, type Suite } from './require.ts'

/** What comes before a command for which the system allows so few watches, in a namespace of its own (Linux). */
export const withWatches = (most: number): readonly string[] => [
  ...['unshare', '-Ur', 'sh', '-c'],
  `echo ${most} > /proc/sys/user/max_inotify_watches; exec "$0" "$@"`,
]

/** A `describe` for what needs that. */
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
