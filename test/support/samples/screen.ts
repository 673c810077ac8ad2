import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The program captures nothing, so that the table of abilities is the same on a machine without a display. */
export async function start(folder: string) {
  const program = join(folder, '.git', 'maim')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  return { mount: { program } }
}
