import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { parseDotenv } from '../settings/dotenv.ts'
import { createBudget, defaultLimits, isParseFault } from '../settings/limits.ts'
import type { Environment } from './environment.ts'

const { maxBytes } = defaultLimits

/**
 * Reads the variables of a dotenv file literally: nothing is expanded, and the last of several with the same name wins. The file is read again
 * once it has changed.
 *
 * Reads throw ResourceError `unavailable` when no regular file exists there, and `too-large` for one of more than a mebibyte.
 */
export function createDotenvFile(file: string): () => Promise<Environment> {
  let known: Environment | undefined
  return async () => {
    let handle: FileHandle | undefined
    try {
      // Do not block on a FIFO.
      handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
      const { mtimeNs, ctimeNs, size, ino, isFile } = await statOf(handle)
      if (!isFile) throw new ResourceError('unavailable', 'There is no file of variables there.')
      if (size > maxBytes)
        throw new ResourceError(
          'too-large',
          `A file of variables has at most ${maxBytes} bytes, and this one has more.`,
        )
      const version = [mtimeNs, ctimeNs, size, ino].join(' ')
      if (known?.version !== version) known = { version, variables: variablesIn(await handle.readFile('utf8')) }
      return known
    } catch (error) {
      if (isResourceError(error)) throw error
      throw new ResourceError('unavailable', 'The file of variables cannot be read.', {}, { cause: error })
    } finally {
      await handle?.close()
    }
  }
}

async function statOf(handle: FileHandle) {
  const stats = await handle.stat({ bigint: true })
  const { mtimeNs, ctimeNs, ino } = stats
  return { mtimeNs, ctimeNs, ino, size: Number(stats.size), isFile: stats.isFile() }
}

function variablesIn(text: string): Readonly<Record<string, string>> {
  try {
    const { root } = parseDotenv(text.replace(/^\ufeff/, ''), createBudget(defaultLimits))
    const entries = root.kind === 'table' ? root.entries : []
    return Object.fromEntries(entries.map(({ key, value }) => [key, value.kind === 'scalar' ? value.text : '']))
  } catch (error) {
    if (isParseFault(error))
      throw new ResourceError('too-large', `The file of variables has too many: ${error.fault.what}`)
    throw error
  }
}
