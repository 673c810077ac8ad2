import { join } from 'node:path'
import { bundleFolder } from './run-folders.ts'

/**
 * The compiled file of a module or of a program of tests. It starts in half the time that a loader of TypeScript needs.
 *
 * @param entry `tests/NAME` for `test/support/NAME.ts`; otherwise the path of an entry below `src/`, without its extension.
 */
export function bundled(entry: string): string {
  return join(bundleFolder, `${entry}.js`)
}
