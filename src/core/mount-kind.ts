import { isObject } from './kit/object.ts'
import { metaKeys } from './meta.ts'

/** The names of the icons that a mount can have. */
export const mountIcons = [
  'box',
  'chart',
  'code',
  'data',
  'database',
  'file',
  'folder',
  'gear',
  'globe',
  'history',
  'image',
  'key',
  'mount',
  'search',
  'table',
  'text',
] as const

export type MountIcon = (typeof mountIcons)[number]

/** A short text about a mount in the languages of the page. */
export interface MountLabel {
  readonly en: string
  /** Default: the English text. */
  readonly ja?: string
}

/** The kind of the data of a mount, as a page shows it. */
export interface MountKind {
  readonly noun: string
  /** Default `mount`. */
  readonly icon?: MountIcon
  readonly label?: MountLabel
  /** The use of the mount, in a few words. */
  readonly purpose?: MountLabel
  /** Whether a page shows the mount first, and open. */
  readonly isFirst?: boolean
  /** Whether the mount can only be queried. A page shows it last. */
  readonly isSearch?: boolean
  /** Whether the resources of the mount differ at every read. */
  readonly isLive?: boolean
  /** Whether the mount is a single resource. Undefined: a page lists the mount to find out. */
  readonly isSingle?: boolean
}

/** Maximum length of a noun and of a label, in characters. */
export const maxLabelLength = 60

/** Undefined without a noun. Malformed members are left out, because a server may send anything. */
export function kindIn(meta: Readonly<Record<string, unknown>> | undefined): MountKind | undefined {
  const kind = meta?.[metaKeys.kind]
  if (!isObject(kind) || !isLabelText(kind.noun)) return undefined
  const { noun, label, purpose } = kind
  const icon = mountIcons.find((name) => name === kind.icon)
  const flags = Object.fromEntries(
    (['isFirst', 'isSearch', 'isLive', 'isSingle'] as const).flatMap((flag) =>
      typeof kind[flag] === 'boolean' ? [[flag, kind[flag]]] : [],
    ),
  )
  return {
    noun,
    ...(icon && { icon }),
    ...(isLabel(label) && { label }),
    ...(isLabel(purpose) && { purpose }),
    ...flags,
  }
}

export function isLabel(value: unknown): value is MountLabel {
  return isObject(value) && isLabelText(value.en) && (value.ja === undefined || isLabelText(value.ja))
}

/** Whether a value is the text of a label: neither blank nor longer than {@link maxLabelLength}. */
export function isLabelText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= maxLabelLength
}
