import type { ComponentChildren, HTMLAttributes, RefObject } from 'preact'
import { announce, copy } from '../state/announce.ts'
import { t } from './words.ts'

interface RegionProps extends Omit<HTMLAttributes<HTMLElement>, 'ref' | 'children'> {
  readonly label: string
  readonly box?: RefObject<HTMLElement | null>
  readonly children?: ComponentChildren
}

/** A part of the page that scrolls separately: it has a name, and the keyboard can reach it. */
export function Region({ label, box, children, ...attributes }: RegionProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keys
    <section {...(box === undefined ? {} : { ref: box })} tabIndex={0} aria-label={label} {...attributes}>
      {children}
    </section>
  )
}

interface ChoiceProps<T extends string> {
  readonly label: string
  readonly options: readonly (readonly [value: T, name: string])[]
  readonly value: T
  readonly onChoose: (value: T) => void
}

/** A choice between a few views of a resource. */
export function Choice<T extends string>({ label, options, value, onChoose }: ChoiceProps<T>) {
  return (
    <fieldset class="switch" aria-label={label}>
      {options.map(([option, name]) => (
        <button
          key={option}
          type="button"
          class="button"
          aria-pressed={option === value}
          onClick={() => onChoose(option)}
        >
          {name}
        </button>
      ))}
    </fieldset>
  )
}

export async function copyText(text: string): Promise<void> {
  announce(t((await copy(text)) ? 'copied' : 'notCopied'))
}
