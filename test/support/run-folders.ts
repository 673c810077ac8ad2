import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** The root of the project. */
export const home = resolve(import.meta.dirname, '../..')

/** `src/` and the test programs, compiled. It is in `node_modules`, so that packages resolve. */
export const bundleFolder = join(home, 'node_modules/.hikidashi-test/dist')

/** The folder for all temporary files of a test run, by the id of its process. */
export const runFolderOf = (pid: number) => join(tmpdir(), `hikidashi-test-${pid}`)

/**
 * The folder for temporary files of a test run: `TMPDIR` of its processes. So nothing is left, even if a test fails or is killed.
 */
export const temporaryFolderOf = (pid: number) => join(runFolderOf(pid), 'tmp')

/** The state folder (XDG) of a test run. It lies outside of every folder that tests serve. */
export const stateFolderOf = (pid: number) => join(runFolderOf(pid), 'state')

/** The environment variable with the folder for files that are created once for a test run. */
export const sharedVariable = 'HIKIDASHI_TEST_SHARED'

/** The folder that `sharedVariable` names. */
export const sharedFolderOf = (pid: number) => join(runFolderOf(pid), 'shared')
