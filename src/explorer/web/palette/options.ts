import { defined } from '../../../core/kit/object.ts'
import type { Resource } from '../../../core/view.ts'
import { isPicked, toggle } from '../basket/picked.ts'
import { copy } from '../state/announce.ts'
import { prompts, templates } from '../state/known.ts'
import { addressOf, go, linkTo, place } from '../state/place.ts'
import { theme } from '../state/remembered.ts'
import { language } from '../words/texts.ts'
import { focusSearch, open, toggleBasket } from './keys.ts'
import type { Option } from './rank.ts'
import { t } from './words.ts'

/** Returns the actions that are possible now. */
export function actions(): readonly Option[] {
  const { uri, basket, source } = place.value
  const action = (id: string, label: string, run: () => void, detail?: string): Option => ({
    ...{ id: `action ${id}`, label, kind: 'action', run },
    ...defined({ detail }),
  })
  const ofShown =
    uri === undefined || uri.endsWith('/')
      ? []
      : [
          action('pick', isPicked(uri) ? t('unpick') : t('pick'), () => toggle({ uri, name: lastOf(uri) })),
          action('source', source === '1' ? t('rendered') : t('source'), () =>
            go({ source: source === '1' ? undefined : '1' }),
          ),
        ]
  const ofPlace =
    uri === undefined
      ? []
      : [
          action('uri', t('copyUri'), () => void copy(uri)),
          action('reveal', t('reveal'), () => go({ view: 'tree', uri })),
        ]
  return [
    action('search', t('search'), focusSearch, '/'),
    action('tree', t('tree'), () => go({ view: 'tree' })),
    action('list', t('list'), () => go({ view: 'list' })),
    action('templates', t('templates'), () =>
      go({ view: 'templates', template: undefined, prompt: undefined, values: undefined }),
    ),
    action('basket', basket === '1' ? t('basketClose') : t('basketOpen'), toggleBasket),
    ...ofShown,
    ...ofPlace,
    action('link', t('copyLink'), () => void copy(addressOf(linkTo({})))),
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
        open.value = 'help'
      },
      '?',
    ),
  ]
}

export function templateOptions(): readonly Option[] {
  return templates.value.items.map(({ uriTemplate, title, name }) => ({
    id: `template ${uriTemplate}`,
    label: title ?? name,
    detail: uriTemplate,
    kind: 'template',
    run: () => go({ view: 'templates', template: uriTemplate, prompt: undefined, values: undefined }),
  }))
}

export function promptOptions(): readonly Option[] {
  return prompts.value.items.map(({ name, title }) => ({
    id: `prompt ${name}`,
    label: title ?? name,
    ...(title === undefined || title === name ? {} : { detail: name }),
    kind: 'prompt',
    run: () => go({ view: 'templates', template: undefined, prompt: name, values: undefined }),
  }))
}

export function resourceOption({ uri, title, name }: Resource): Option {
  const isDirectory = uri.endsWith('/')
  return {
    id: `resource ${uri}`,
    label: name,
    ...(title === undefined || title === name ? {} : { aside: title }),
    detail: uri,
    kind: 'resource',
    run: () => go(isDirectory ? { view: 'tree', uri } : { uri }),
  }
}

/** Returns options for the typed text as a URI or as words. */
export function typedOptions(query: string): readonly Option[] {
  const text = query.trim()
  if (text === '') return []
  const uri: readonly Option[] = /^[A-Za-z][A-Za-z0-9+.-]*:\S+$/.test(text)
    ? [{ id: 'typed uri', label: t('goTo', { uri: text }), kind: 'action', run: () => go({ uri: text }) }]
    : []
  const words: Option = {
    id: 'typed words',
    label: t('searchFor', { query: text }),
    kind: 'action',
    run: () => go({ view: 'search', q: text }),
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
