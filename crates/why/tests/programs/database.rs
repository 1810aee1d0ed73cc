//! Programs that keep data: sqlite3 and git, and openssl, which guards it.

use crate::Program;
use crate::data::{bash, text};
use crate::support::job::Job;
use crate::support::package;

pub const PROGRAMS: &[Program] =
    &[Program::new("sqlite3", sqlite3), Program::new("git", git), Program::new("openssl", openssl)];

fn sqlite3() -> Result<Job, String> {
    let sql = r#"
CREATE TABLE tree(id INTEGER PRIMARY KEY, name TEXT NOT NULL, height REAL);
CREATE TABLE leaf(id INTEGER PRIMARY KEY, tree INTEGER REFERENCES tree(id), area REAL);
CREATE INDEX leaf_tree ON leaf(tree);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
INSERT INTO tree SELECT i, printf('tree %03d', i), (i * 7919 % 1000) / 10.0 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO leaf SELECT i, 1 + i * 31 % 500, (i * 104729 % 997) / 9.7 FROM n;
COMMIT;
SELECT t.name, count(*), round(sum(l.area), 3) FROM tree t JOIN leaf l ON l.tree = t.id
  WHERE t.height > 90 GROUP BY t.id ORDER BY 3 DESC LIMIT 5;
SELECT name, height, rank() OVER (ORDER BY height DESC) FROM tree ORDER BY height DESC, id LIMIT 5;
EXPLAIN QUERY PLAN SELECT * FROM leaf WHERE tree = 3;
UPDATE tree SET height = height * 2 WHERE id % 2; DELETE FROM leaf WHERE area < 10;
SELECT count(*), round(avg(area), 6) FROM leaf; SELECT round(total(height), 3) FROM tree;
INSERT INTO tree VALUES (1, 'again', 0);
VACUUM; PRAGMA integrity_check;
"#;
    Ok(bash("sqlite3 forest.db < job.sql || echo \"ended with $?\"").file("job.sql", sql))
}

fn git() -> Result<Job, String> {
    // The index holds times and inode numbers of the working tree.
    Ok(bash(
        r#"
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000' GIT_CONFIG_NOSYSTEM=1
git init -q -b main repo; cd repo
cp ../words .; git add words; git commit -q -m 'First words'
git checkout -q -b side; sed -i 's/^oak/OAK/' words; git commit -qam 'Shout oak'
git checkout -q main; echo 'the end' >> words; git commit -qam 'An end'
git merge -q --no-edit side; git log --graph --oneline --no-decorate; git log -1 --format='%H %T %an %s'
git diff --stat HEAD~1; git blame -s words | tail -2; git show HEAD^2 --stat --format=%s
git checkout -q -b clash HEAD~1; sed -i '$s/.*/another end/' words; git commit -qam 'Another end'
git merge main -q && echo merged || { git status --short; git merge --abort; }
git -c pack.threads=1 repack -qad; git fsck --no-progress; git rev-list --all --count; git archive main | sha256sum
cd ..; rm -rf repo/.git/index repo/.git/hooks
"#,
    )
    .file("words", text(500)))
}

fn openssl() -> Result<Job, String> {
    package::find("openssl")?;
    // The head of a PKCS#8 key for Ed25519; the 32 bytes of the key follow it.
    Ok(bash(
        r#"
for digest in md5 sha1 sha256 sha512 sha3-256 blake2b512; do openssl dgst -$digest words; done
openssl dgst -sha256 -hmac secret words
openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -k pass -in words -out cbc
openssl enc -d -aes-256-cbc -pbkdf2 -S 0011223344556677 -k pass -in cbc | cmp - words && echo "cbc: same"
for cipher in aes-128-ctr chacha20 aes-256-ecb camellia-128-cbc; do
    openssl enc -$cipher -K 000102030405060708090a0b0c0d0e0f -iv 000102030405060708090a0b0c0d0e0f -in words 2>/dev/null | sha256sum
done
{ printf '\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20'; head -c 32 words; } > key.der
openssl pkey -inform DER -in key.der -out key.pem; openssl pkey -in key.pem -pubout -out public.pem
openssl pkeyutl -sign -rawin -in words -inkey key.pem -out signature
openssl pkeyutl -verify -rawin -in words -pubin -inkey public.pem -sigfile signature
openssl prime 1000000007 1000000008; openssl asn1parse -in public.pem
"#,
    )
    .file("words", text(20_000)))
}
