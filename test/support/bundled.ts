import { join } from 'node:path'
import { bundleFolder } from './run-folders.ts'

/**
 * Returns the compiled file of a module or test program, which starts in half the time of a TypeScript loader.
 * @param entry `tests/NAME` for a test program NAME.ts (`test/support/global-setup.ts`); otherwise the path of an entry below `src/`, without its extension.
 */
export function bundled(entry: string): string {
  return join(bundleFolder, `${entry}.js`)
}
