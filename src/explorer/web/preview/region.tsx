import type { ComponentChildren, HTMLAttributes, RefObject } from 'preact'

interface Props extends Omit<HTMLAttributes<HTMLElement>, 'ref' | 'children'> {
  readonly label: string
  readonly box?: RefObject<HTMLElement | null>
  readonly children?: ComponentChildren
}

/** A part of the page that scrolls separately: it has a name, and the keyboard can reach it. */
export function Region({ label, box, children, ...attributes }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keys
    <section {...(box === undefined ? {} : { ref: box })} tabIndex={0} aria-label={label} {...attributes}>
      {children}
    </section>
  )
}
