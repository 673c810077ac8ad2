import { type Folder, readIn } from './folder.ts'

/** The content of `HEAD`: the branch that it is on, or the commit that it is detached at. */
export type Head = { readonly branch: string } | { readonly oid: string }

/** Reads `HEAD` as data. Returns undefined when it is not in git's format: a symbolic link, or a ref that is no branch. */
export async function readHead(gitDir: Folder, idLength: number): Promise<Head | undefined> {
  let text: string | undefined
  try {
    text = (await readIn(gitDir, 'HEAD', 4096))?.toString('utf8').trimEnd()
  } catch {
    return undefined
  }
  const branch = /^ref:\s*(refs\/heads\/[^\s\p{Cc}]+)$/u.exec(text ?? '')?.[1]
  if (branch !== undefined && !branch.includes('\ufffd')) return { branch }
  return text !== undefined && text.length === idLength && /^[0-9a-f]+$/.test(text) ? { oid: text } : undefined
}
