import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Files of one run of LibreOffice, of which each start takes seconds. */
const batchSize = 25
const [batchMs, fileMs] = [180_000, 60_000]

/** The documents of a folder in other formats, as LibreOffice converts them: many at a time, from the one that is asked for on. */
export function createOffice(files: readonly string[], target: 'txt:Text' | 'pptx') {
  const folder = mkdtempSync(join(tmpdir(), 'office-'))
  const profile = pathToFileURL(join(folder, 'profile')).href
  const extension = target.split(':', 1)[0]
  const converted = (index: number) => join(folder, `${index}.${extension}`)
  let next = 0
  let isMissing = false

  /** Returns whether LibreOffice came to an end of its own. */
  const convert = async (indexes: readonly number[], timeout: number): Promise<boolean> => {
    const links = indexes.map((index) => join(folder, `${index}${extname(files[index] ?? '')}`))
    const args = [
      `-env:UserInstallation=${profile}`,
      '--headless',
      '--convert-to',
      target,
      '--outdir',
      folder,
      ...links,
    ]
    const child = spawn('soffice', args, { stdio: 'ignore', detached: true })
    const timer = setTimeout(() => endGroup(child), timeout)
    try {
      const [code] = await once(child, 'close')
      return code === 0
    } catch (error) {
      isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      return true
    } finally {
      clearTimeout(timer)
    }
  }

  const convertFrom = async (first: number) => {
    const indexes = files.slice(first, first + batchSize).map((_, index) => first + index)
    next = first + indexes.length
    for (const index of indexes)
      symlinkSync(resolve(files[index] ?? ''), join(folder, `${index}${extname(files[index] ?? '')}`))
    if (await convert(indexes, batchMs)) return
    // One of them ended the program before it came to the others.
    for (const index of indexes) if (!existsSync(converted(index))) await convert([index], fileMs)
  }

  return {
    /** The path of a converted document; undefined if LibreOffice does not read it. */
    pathOf: async (file: string): Promise<{ readonly path?: string | undefined; readonly isMissing: boolean }> => {
      const index = files.indexOf(file)
      while (next <= index && !isMissing) await convertFrom(next)
      const path = converted(index)
      return { path: existsSync(path) ? path : undefined, isMissing }
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Ends a program and those that it has started. */
function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}
