import { clustersOf } from './clusters.ts'
import type { Key } from './input.ts'

/** One line that is being written. `at`: where the cursor is, in UTF-16 units. */
export interface Editor {
  readonly text: string
  readonly at: number
}

/** Maximum length of the line, because every key press processes the whole line. Nobody writes more by hand. */
const maxLength = 4096

export function editorOf(text: string): Editor {
  return { text, at: text.length }
}

export function insert({ text, at }: Editor, more: string): Editor {
  const fits = more.slice(0, Math.max(0, maxLength - text.length)).replace(/[\ud800-\udbff]$/, '')
  return { text: text.slice(0, at) + fits + text.slice(at), at: at + fits.length }
}

/** Applies a key to the line; undefined if the key is not an editing key. */
export function edit(editor: Editor, { name, ctrl }: Key): Editor | undefined {
  const { text, at } = editor
  const before = text.slice(0, at)
  const after = text.slice(at)
  if (name === 'left' || (ctrl && name === 'b')) return { text, at: at - lastOf(before).length }
  if (name === 'right' || (ctrl && name === 'f')) return { text, at: at + firstOf(after).length }
  if (name === 'home' || (ctrl && name === 'a')) return { text, at: 0 }
  if (name === 'end' || (ctrl && name === 'e')) return { text, at: text.length }
  if (name === 'backspace') return cutTo(before.slice(0, before.length - lastOf(before).length), after)
  if (name === 'delete') return { text: before + after.slice(firstOf(after).length), at }
  if (ctrl && name === 'w') return cutTo(before.replace(/\S*\s*$/, ''), after)
  if (ctrl && name === 'u') return cutTo('', after)
  if (ctrl && name === 'k') return { text: before, at }
  return undefined
}

function cutTo(before: string, after: string): Editor {
  return { text: before + after, at: before.length }
}

// The line is sanitised, so its clusters are its text.
const lastOf = (text: string) => clustersOf(text).at(-1)?.text ?? ''
const firstOf = (text: string) => clustersOf(text).at(0)?.text ?? ''
