# Targets of release and packaging, to be included by the Makefile at the top.

.PHONY: dist manifest-check krew-test deny docs-update rbac man

## dist: the release archive of this platform, into dist/
dist:
	release/release.sh

## manifest-check: plugin.yaml against its template
manifest-check:
	release/manifest.py check plugin.yaml

## krew-test: install, upgrade and remove through a real krew
krew-test:
	tests/krew.sh

## deny: licences, sources, duplicate versions and, where its database can be had, advisories
deny:
	release/deny.sh

## rbac: writes deploy/rbac from the table of permissions
rbac:
	UPDATE_RBAC=1 cargo test --test cli permissions::

## docs-update: writes the generated parts of docs/ and the pages' output
docs-update:
	UPDATE_DOCS=1 cargo test --test cli docs::
	UPDATE_DOCS=1 cargo test --test cli picture::

## man: man pages of all commands, into man/
man:
	cargo run --quiet --example man -- man
