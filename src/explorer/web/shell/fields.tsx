import { type AllHTMLAttributes, type ButtonHTMLAttributes, createElement, type Ref } from 'preact'
import type { splitAtMarks } from '../../../core/search-answer.ts'
import { escapeInvisible, langOf } from '../words/texts.ts'
import { Icon, type IconName } from './icons.tsx'

export const rowHeightPx = globalThis.matchMedia?.('(pointer: coarse)').matches === true ? 44 : 24

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'class' | 'name' | 'ref'> {
  /** The text of the button. With an icon or a sign, its name for screen readers and its tooltip. */
  readonly name: string
  readonly icon?: IconName
  readonly sign?: string
  readonly class?: string
}

/** A button that shows its name, an icon or a sign. */
export function Button({ name, icon, sign, class: more = '', ...attributes }: ButtonProps) {
  const picture = icon === undefined ? sign : <Icon name={icon} />
  const hints = picture === undefined ? {} : { 'aria-label': name, title: name }
  return (
    <button type="button" class={`button ${more}`.trimEnd()} {...hints} {...attributes}>
      {picture ?? name}
    </button>
  )
}

interface SearchInputProps {
  readonly id?: string
  readonly name: string
  /** Default: the name. */
  readonly placeholder?: string
  readonly field: Ref<HTMLInputElement>
  /** Called with the text at each change. A text that an input method composes is passed once it is complete. */
  readonly onText?: (text: string) => void
  readonly onKey?: (event: KeyboardEvent) => void
}

export function SearchInput({ id, name, placeholder = name, field, onText, onKey }: SearchInputProps) {
  return (
    <>
      <Icon name="search" />
      <input
        {...(id === undefined ? {} : { id })}
        ref={field}
        type="search"
        class="field"
        autocomplete="off"
        spellcheck={false}
        enterkeyhint="search"
        aria-label={name}
        placeholder={placeholder}
        onInput={(event) => {
          if (!event.isComposing) onText?.(event.currentTarget.value)
        }}
        onCompositionEnd={({ currentTarget }) => onText?.(currentTarget.value)}
        onKeyDown={(event) => {
          const isComposing = event.isComposing || event.keyCode === 229
          if (!isComposing) onKey?.(event)
          // Enter only ends the composition, and must not submit the form.
          else if (event.key === 'Enter') event.preventDefault()
        }}
      />
    </>
  )
}

/** An option of a `Select`: its value, its displayed name, and the language of the name if it differs from that of the page. */
export type SelectOption<T extends string> = readonly [value: T, name: string, lang?: string]

interface SelectProps<T extends string> {
  readonly label: string
  readonly class?: string
  readonly options: readonly SelectOption<T>[]
  readonly value: T
  readonly onChoose: (value: T) => void
}

export function Select<T extends string>({ label, class: name, options, value, onChoose }: SelectProps<T>) {
  return (
    <label class={name}>
      <span>{label}</span>
      <select class="field" value={value} onChange={({ currentTarget }) => onChoose(currentTarget.value as T)}>
        {options.map(([option, text, lang]) => (
          <option key={option} value={option} lang={lang}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

interface TextProps extends Omit<AllHTMLAttributes<HTMLElement>, 'as' | 'ref' | 'children'> {
  readonly as?: 'a' | 'h1' | 'h2' | 'h3' | 'li' | 'p' | 'small' | 'span' | 'td' | 'th'
  readonly text: string | undefined
}

/** A text from a server: invisible characters are shown, its direction is isolated, and its language is marked. */
export function ServerText({ as = 'span', text, ...attributes }: TextProps) {
  if (text === undefined) return null
  return createElement(as, { lang: langOf(text), ...attributes }, <bdi>{escapeInvisible(text)}</bdi>)
}

export function MarkedText({ pieces }: { readonly pieces: ReturnType<typeof splitAtMarks> }) {
  return pieces.map(({ text, marked }, index) =>
    marked ? <mark key={index}>{escapeInvisible(text)}</mark> : escapeInvisible(text),
  )
}
