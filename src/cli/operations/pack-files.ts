import { readFile, writeFile } from 'node:fs/promises'
import { isResourceError } from '../../core/errors.ts'
import { failed } from '../terminal/exit.ts'

/** Reads and parses a text file. Errors name the file. */
export async function readText<T>(file: string, parse: (text: string) => T): Promise<T> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw failed(`The file ${file} cannot be read: ${reasonOf(error)}`)
  })
  try {
    return parse(text)
  } catch (error) {
    if (!isResourceError(error)) throw error
    throw failed(`${file}: ${error.message}`)
  }
}

export async function writeText(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((error: unknown) => {
    throw failed(`The file ${file} cannot be written: ${reasonOf(error)}`)
  })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
