import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

export const schema = { name: z.string() }
export const metadata = { name: 'docs', title: 'Files', mimeType: 'text/plain' }

export default function read({ name }: { readonly name: string }): Promise<string> {
  return readFile(join(process.env.BENCH_FOLDER ?? '.', name), 'utf8')
}
