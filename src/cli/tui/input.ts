import { StringDecoder } from 'node:string_decoder'
import { escapeText } from '../terminal/text.ts'
import { clustersOf } from './cells.ts'

/** A key that is not text. With `ctrl`, `name` is the letter that was pressed together with Ctrl. */
export interface Key {
  readonly kind: 'key'
  readonly name: string
  readonly ctrl?: true
}

/** Input of the user at the terminal. */
export type Input =
  | Key
  /** Text that was typed, or came from an input method: one character or more. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'paste'; readonly text: string }

/** Maximum length of a paste, in UTF-16 units. The rest of a longer paste is dropped. */
const maxPaste = 65_536
/** Maximum length of an escape sequence, in UTF-16 units. A longer sequence is skipped. */
const maxSequence = 4096

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: this is what a terminal sends
const csi = /^\x1b\[([0-?]*)([ -/]*)([@-~])/
const csiBegun = /^\x1b\[[0-?]*[ -/]*$/
const told = /^\x1b[\]P^_X](?:[^\x1b\x07]|\x1b(?!\\))*?(?:\x07|\x1b\\)/s
const toldBegun = /^\x1b[\]P^_X]/
const texts = /^[^\x00-\x1f\x7f]+/
/** A single escape character: the Escape key, or the beginning of the sequence of a key. */
const lone = /^\x1b$/

// biome-ignore-end lint/suspicious/noControlCharactersInRegex: up to here

const begin = '\u001b[200~'
const end = '\u001b[201~'

const finals: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  F: 'end',
  H: 'home',
  Z: 'backtab',
}
const tildes: Readonly<Record<string, string>> = {
  '1': 'home',
  '3': 'delete',
  '4': 'end',
  '5': 'pageup',
  '6': 'pagedown',
  '7': 'home',
  '8': 'end',
}
const controls: Readonly<Record<string, string>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\b': 'backspace',
  '\u007f': 'backspace',
}

/** Creates a decoder of keys, text and pastes from the bytes of a terminal, in chunks of any length. It skips other sequences. */
export function createInputDecoder() {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let pasted: string | undefined

  const takeAll = (isOver: boolean): readonly Input[] => {
    const inputs: Input[] = []
    while (rest !== '') {
      if (pasted !== undefined) {
        const at = rest.indexOf(end)
        // The sequence that ends the paste may be split over two chunks.
        const upTo = at < 0 ? Math.max(0, rest.length - (end.length - 1)) : at
        pasted += rest.slice(0, Math.min(upTo, Math.max(0, maxPaste - pasted.length)))
        rest = rest.slice(at < 0 ? upTo : at + end.length)
        if (at < 0) break
        inputs.push({ kind: 'paste', text: pastedText(pasted) })
        pasted = undefined
        continue
      }
      if (rest.startsWith(begin)) {
        rest = rest.slice(begin.length)
        pasted = ''
        continue
      }
      const step = next(rest, isOver)
      if (step === undefined) break
      rest = rest.slice(step.length)
      if (step.input !== undefined) inputs.push(step.input)
    }
    return inputs
  }

  return {
    /** Whether an escape sequence is incomplete. If no input follows soon, call `settle`. */
    get isOpen(): boolean {
      return rest !== '' && pasted === undefined
    },
    take: (bytes: Uint8Array): readonly Input[] => {
      rest += decoder.write(Buffer.from(bytes))
      return takeAll(false)
    },
    /** Completes an incomplete escape sequence, after a moment without input: a single escape is the Escape key. */
    settle: (): readonly Input[] => (pasted === undefined ? takeAll(true) : []),
  }
}

interface ParsedInput {
  readonly length: number
  readonly input?: Input
}

/** Returns the first input of the text; undefined while it is incomplete. */
function next(text: string, isOver: boolean): ParsedInput | undefined {
  const typed = texts.exec(text)?.[0]
  if (typed !== undefined) return { length: typed.length, input: { kind: 'text', text: typed } }
  if (text[0] !== '\u001b') return { length: 1, input: controlOf(text[0] ?? '') }
  const sequence = csi.exec(text)
  if (sequence !== null) return keyStep(sequence[0].length, keyOf(sequence[1] ?? '', sequence[3] ?? ''))
  const answer = told.exec(text)?.[0]
  if (answer !== undefined) return { length: answer.length }
  if (text[1] === 'O' && text.length > 2) return keyStep(3, finals[text[2] ?? ''])
  const isBegun = lone.test(text) || text === '\u001bO' || csiBegun.test(text) || toldBegun.test(text)
  if (isBegun && !isOver && text.length < maxSequence) return undefined
  // Skip an escape sequence that never ends.
  if (text.length > 2 && isBegun) return { length: text.length }
  return { length: 1, input: { kind: 'key', name: 'escape' } }
}

function keyStep(length: number, name: string | undefined): ParsedInput {
  return name === undefined ? { length } : { length, input: { kind: 'key', name } }
}

function keyOf(parameters: string, final: string): string | undefined {
  const [first = ''] = parameters.split(';')
  return final === '~' ? tildes[first] : /^[\d;]*$/.test(parameters) ? finals[final] : undefined
}

function controlOf(character: string): Input {
  const name = controls[character]
  if (name !== undefined) return { kind: 'key', name }
  // Ctrl-A is 1, Ctrl-Z is 26; Ctrl-Space is 0.
  return { kind: 'key', name: String.fromCharCode(character.charCodeAt(0) + 96), ctrl: true }
}

/** Returns pasted text as one line without control characters. */
function pastedText(text: string): string {
  return escapedless(text.replace(/\s*[\r\n\t]+\s*/g, ' ').trim())
}

/** Returns the text without the characters that {@link escapeText} would escape. */
export function escapedless(text: string): string {
  return Array.from(text)
    .filter((character) => escapeText(character) === character)
    .join('')
}

/** A line that the user edits. `at`: position of the cursor, in UTF-16 units. */
export interface Editor {
  readonly text: string
  readonly at: number
}

/** Maximum length of the edited line, in UTF-16 units. It bounds the work of a key press, which processes the whole line. */
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

// The line has no characters that need an escape, so the texts of its clusters are its own text.
const lastOf = (text: string) => clustersOf(text).at(-1)?.text ?? ''
const firstOf = (text: string) => clustersOf(text).at(0)?.text ?? ''
