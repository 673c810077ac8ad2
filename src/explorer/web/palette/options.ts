import { foldText } from '../../../core/kit/matching.ts'
import { defined } from '../../../core/kit/object.ts'
import type { Resource } from '../../../core/view.ts'
import { isPicked, toggleFile } from '../basket/picked.ts'
import { distinctTitle } from '../listing/columns.ts'
import { escapeUri } from '../preview/model/reference.ts'
import { focusSearch, shownDialog, toggleBasket } from '../shell/keys.ts'
import { copyToClipboard } from '../state/announce.ts'
import { prompts, templates } from '../state/offered.ts'
import { theme } from '../state/remembered.ts'
import { linkTo, navigate, permalinkUrl, route } from '../state/route.ts'
import { language } from '../words/texts.ts'
import { t } from './words.ts'

/** An action, a template, a prompt or a resource that the palette offers. */
export interface PaletteOption {
  readonly id: string
  /** The text that is matched and shown first. */
  readonly label: string
  /** Shown in grey after the label, and also matched: the title of a file. */
  readonly aside?: string
  /** Shown after the aside, and also matched: an address, a key. */
  readonly detail?: string
  readonly kind: 'action' | 'mount' | 'template' | 'prompt' | 'resource'
  readonly run: () => void
}

/**
 * How well a text matches a query, both folded: higher is better, `undefined` not at all. A contiguous match comes before spread letters,
 * the beginning of a word before its middle, short texts before long ones.
 */
export function matchScore(query: string, text: string): number | undefined {
  if (query === '') return 0
  const at = text.indexOf(query)
  if (at !== -1) {
    const begins = at === 0 || /[\s/._\-:[\]()]/.test(text[at - 1] ?? '')
    return 1000 + (begins ? 200 : 0) + (at === 0 ? 100 : 0) - Math.min(90, text.length / 4)
  }
  return spreadFit(query, text)
}

function spreadFit(query: string, text: string): number | undefined {
  let from = 0
  let gaps = 0
  let first = -1
  for (const character of query) {
    if (character === ' ') continue
    const at = first === -1 ? beginningOf(character, text) : text.indexOf(character, from)
    if (at === -1) return undefined
    if (first === -1) first = at
    else gaps += at - from
    from = at + character.length
  }
  return gaps > 3 * query.length ? undefined : 500 - 10 * gaps - Math.min(90, text.length / 4)
}

function beginningOf(character: string, text: string): number {
  let at = text.indexOf(character)
  while (at > 0 && !/[\s/._\-:]/.test(text[at - 1] ?? '')) at = text.indexOf(character, at + 1)
  return at
}

const kinds = ['action', 'mount', 'template', 'prompt', 'resource'] as const

/** Returns at most `most` options that match, best first; with equal scores, in the order of {@link kinds}. */
export function rankOptions(options: readonly PaletteOption[], query: string, most = 50): readonly PaletteOption[] {
  const needle = foldText(query.trim())
  const fitting = options.flatMap((option, at) => {
    const label = matchScore(needle, foldText(option.label))
    const detail = option.detail === undefined ? undefined : matchScore(needle, foldText(option.detail))
    const aside = option.aside === undefined ? undefined : matchScore(needle, foldText(option.aside))
    const others = Math.max(aside ?? Number.NEGATIVE_INFINITY, detail ?? Number.NEGATIVE_INFINITY)
    const fit = Math.max(label ?? Number.NEGATIVE_INFINITY, others - 50)
    return Number.isFinite(fit) ? [{ option, fit, at }] : []
  })
  return fitting
    .sort((a, b) => b.fit - a.fit || kinds.indexOf(a.option.kind) - kinds.indexOf(b.option.kind) || a.at - b.at)
    .slice(0, most)
    .map(({ option }) => option)
}

export function paletteActions(): readonly PaletteOption[] {
  const { uri, basket, source } = route.value
  const action = (id: string, label: string, run: () => void, detail?: string): PaletteOption => ({
    ...{ id: `action ${id}`, label, kind: 'action', run },
    ...defined({ detail }),
  })
  const ofShown =
    uri === undefined || uri.endsWith('/')
      ? []
      : [
          action('pick', isPicked(uri) ? t('unpick') : t('pick'), () => toggleFile({ uri, name: lastOf(uri) })),
          action('source', source === '1' ? t('rendered') : t('source'), () =>
            navigate({ source: source === '1' ? undefined : '1' }),
          ),
        ]
  const ofRoute =
    uri === undefined
      ? []
      : [
          action('uri', t('copyUri'), () => void copyToClipboard(uri)),
          action('reveal', t('reveal'), () => navigate({ view: 'tree', uri })),
        ]
  return [
    action('search', t('search'), focusSearch, '/'),
    action('start', t('start'), () => navigate({ view: undefined, uri: undefined, filter: undefined })),
    action('tree', t('tree'), () => navigate({ view: 'tree' })),
    action('list', t('list'), () => navigate({ view: 'list' })),
    action('templates', t('templates'), () =>
      navigate({ view: 'templates', template: undefined, prompt: undefined, values: undefined }),
    ),
    action('basket', basket === '1' ? t('basketClose') : t('basketOpen'), toggleBasket),
    ...ofShown,
    ...ofRoute,
    action('link', t('copyLink'), () => void copyToClipboard(permalinkUrl(linkTo({})))),
    ...(['light', 'dark', 'system'] as const).map((one) =>
      action(one, t(one), () => {
        theme.value = one
      }),
    ),
    action('en', t('english'), () => {
      language.value = 'en'
    }),
    action('ja', t('japanese'), () => {
      language.value = 'ja'
    }),
    action(
      'help',
      t('help'),
      () => {
        shownDialog.value = 'help'
      },
      '?',
    ),
  ]
}

export function templateOptions(): readonly PaletteOption[] {
  return templates.value.items.map(({ uriTemplate, title, name }) => ({
    id: `template ${uriTemplate}`,
    label: title ?? name,
    detail: uriTemplate,
    kind: 'template',
    run: () => navigate({ view: 'templates', template: uriTemplate, prompt: undefined, values: undefined }),
  }))
}

export function promptOptions(): readonly PaletteOption[] {
  return prompts.value.items.map(({ name, title }) => ({
    id: `prompt ${name}`,
    label: title ?? name,
    ...(title === undefined || title === name ? {} : { detail: name }),
    kind: 'prompt',
    run: () => navigate({ view: 'templates', template: undefined, prompt: name, values: undefined }),
  }))
}

export function resourceOption({ uri, title, name }: Resource): PaletteOption {
  const isDirectory = uri.endsWith('/')
  return {
    id: `resource ${uri}`,
    label: name,
    ...defined({ aside: distinctTitle({ name, ...defined({ title }) }) }),
    detail: uri,
    kind: 'resource',
    run: () => navigate(isDirectory ? { view: 'tree', uri } : { uri }),
  }
}

/** Whether a typed text is a whole URI, which may have spaces and letters of every script after `//`. */
export const isUri = (text: string) => /^[A-Za-z][A-Za-z0-9+.-]*:(?:\/\/.+|\S+)$/.test(text.trim())

export function typedOptions(query: string): readonly PaletteOption[] {
  const text = query.trim()
  if (text === '') return []
  const uri: readonly PaletteOption[] = isUri(text)
    ? [
        {
          id: 'typed uri',
          label: t('goTo', { uri: text }),
          kind: 'action',
          run: () => navigate({ uri: escapeUri(text) }),
        },
      ]
    : []
  const words: PaletteOption = {
    id: 'typed words',
    label: t('searchFor', { query: text }),
    kind: 'action',
    run: () => navigate({ view: 'search', q: text }),
  }
  return [...uri, words]
}

function lastOf(uri: string): string {
  return (
    uri
      .replace(/[?#].*$/s, '')
      .split('/')
      .at(-1) || uri
  )
}
