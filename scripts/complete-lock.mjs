// Completes package-lock.json after an `npm install` that could not see every platform's variant of a package: npm leaves out what it cannot find, and `npm ci` then refuses the lock file. An added entry names version
// and platform; only a machine of that platform ever fetches it.
import { readFileSync, writeFileSync } from 'node:fs'

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

const file = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(file, 'utf8'))

for (const [path, owner] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(owner.optionalDependencies ?? {})) {
    if (lock.packages[`node_modules/${name}`] || lock.packages[`${path}/node_modules/${name}`]) continue
    lock.packages[`node_modules/${name}`] = variantEntry(name, version, owner)
  }
}
const sorted = Object.entries(lock.packages).toSorted(([one], [other]) => one.localeCompare(other, 'en'))
lock.packages = Object.fromEntries(sorted)
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)

function variantEntry(name, version, owner) {
  const words = name.slice(name.indexOf('/') + 1).split('-')
  const cpu = words.find((word) => processors.includes(word))
  const os = words.find((word) => systems.includes(word))
  if (cpu === undefined || !/^\d/.test(version))
    throw new Error(`Not the variant of a platform: ${name}@${version}`)
  const libc = os === 'linux' ? libcOf(words.at(-1)) : undefined
  return {
    version,
    cpu: [cpu],
    dev: true,
    ...(libc && { libc: [libc] }),
    license: owner.license,
    optional: true,
    ...(os && { os: [os] }),
    ...(owner.engines && { engines: owner.engines }),
  }
}

function libcOf(word) {
  if (word.startsWith('musl')) return 'musl'
  return word.startsWith('gnu') ? 'glibc' : undefined
}
