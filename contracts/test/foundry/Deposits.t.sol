// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {Deposit} from "../../src/Deposit.sol";
import {DepositFactory, Sweep} from "../../src/DepositFactory.sol";
import {TestUSDC} from "../../src/TestUSDC.sol";
import {LimitedToken} from "../mocks/LimitedToken.sol";
import {Base, OddToken, Vm} from "./Base.sol";

contract DepositsTest is Base {
    bytes32 private constant SWEPT = keccak256("Swept(address,address,address,uint256)");
    bytes32 private constant FAILED = keccak256("SweepFailed(address,address)");

    DepositFactory private factory;
    TestUSDC private token;
    OddToken private odd;

    function setUp() public {
        factory = new DepositFactory();
        token = new TestUSDC(address(this));
        odd = new OddToken();
    }

    function one(bytes32 id, address asset) private pure returns (Sweep[] memory all) {
        all = new Sweep[](1);
        all[0] = Sweep(MERCHANT, id, asset);
    }

    /// Sweeps, and returns the topic and the amount of each event of the factory.
    function swept(Sweep[] memory all) private returns (bytes32[] memory topics, uint256[] memory amounts) {
        vm.recordLogs();
        factory.sweep(all);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        uint256 n = 0;
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(factory)) ++n;
        }
        topics = new bytes32[](n);
        amounts = new uint256[](n);
        n = 0;
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter != address(factory)) continue;
            topics[n] = logs[i].topics[0];
            if (logs[i].data.length == 32) amounts[n] = abi.decode(logs[i].data, (uint256));
            ++n;
        }
    }

    function testFuzz_Address(address merchant, bytes32 id) public {
        address implementation = factory.implementation();
        require(implementation.code.length > 0, "there is no implementation");
        bytes memory code = abi.encodePacked(
            hex"6100413d81600a3d39f3363d3d373d3d3d363d73", implementation, hex"5af43d82803e903d91602b57fd5bf3", merchant
        );
        address at = address(uint160(uint256(keccak256(abi.encodePacked(hex"ff", factory, id, keccak256(code))))));
        require(factory.depositAddress(merchant, id) == at, "the address is another");
        factory.sweepOne(Sweep(merchant, id, address(token)));
        require(Deposit(payable(at)).merchant() == merchant, "the merchant is another");
        vm.expectRevert();
        factory.sweepOne(Sweep(merchant, id, address(1))); // not a token
    }

    function testFuzz_Sweep(uint128 amount, bytes32 id) public {
        address at = factory.depositAddress(MERCHANT, id);
        token.mint(at, amount);
        (bytes32[] memory topics, uint256[] memory amounts) = swept(one(id, address(token)));
        eq(token.balanceOf(MERCHANT), amount, "what the merchant has");
        if (amount == 0) return eq(topics.length, 0, "nothing was logged as swept");
        require(topics[0] == SWEPT && amounts[0] == amount, "the event says something else");
        token.mint(at, 7); // once more, with code there
        eq(factory.sweepOne(one(id, address(token))[0]), 7, "the second sweep");
    }

    function test_OnlyAClone() public {
        Deposit implementation = Deposit(payable(factory.implementation()));
        vm.expectRevert(abi.encodeWithSelector(Deposit.NotADeposit.selector));
        implementation.sweep(address(token));
    }

    function test_Coin() public {
        address at = factory.depositAddress(MERCHANT, 0);
        vm.deal(at, 5);
        (bytes32[] memory topics, uint256[] memory amounts) = swept(one(0, address(0)));
        require(topics[0] == SWEPT && amounts[0] == 5, "the event says something else");
        eq(MERCHANT.balance, 5, "what the merchant has");
        eq(factory.sweepOne(one(0, address(0))[0]), 0, "there was something left");
        (topics,) = swept(one(0, address(0)));
        eq(topics.length, 0, "nothing was logged as swept");
        address refuser = address(new OddToken()); // does not accept coin
        vm.deal(factory.depositAddress(refuser, 0), 5);
        vm.expectRevert(abi.encodeWithSelector(Deposit.NotTransferred.selector, address(0)));
        factory.sweepOne(Sweep(refuser, 0, address(0)));
    }

    function testFuzz_PartialTransfer(uint64 amount, uint8 denominator) public {
        uint256 held = within(amount, 1, 1e12);
        uint256 d = within(denominator, 1, 200);
        address at = factory.depositAddress(MERCHANT, 0);
        odd.mint(at, held);
        odd.set(1, d, 0);
        (bytes32[] memory topics, uint256[] memory amounts) = swept(one(0, address(odd)));
        eq(topics.length, 1, "the number of events");
        uint256 left = odd.balanceOf(at);
        if (topics[0] == FAILED) return eq(left, held, "a failed sweep moved something");
        eq(amounts[0], held - left, "the amount of the event");
        eq(odd.balanceOf(MERCHANT), held - left, "what the merchant has");
        require(left < held, "nothing moved");
    }

    function test_NothingMoves() public {
        address at = factory.depositAddress(MERCHANT, 0);
        odd.mint(at, 10);
        odd.set(0, 1, 0);
        vm.expectRevert(abi.encodeWithSelector(Deposit.NotTransferred.selector, address(odd)));
        factory.sweepOne(one(0, address(odd))[0]);
        uint256 before = gasleft();
        (bool ok,) = address(factory).call{gas: 500_000}(abi.encodeCall(factory.sweepOne, (one(0, address(odd))[0])));
        require(!ok && before - gasleft() < 200_000, "a token that moves nothing is called again");
        odd.set(1, 1, 0);
        odd.refuse(true);
        vm.expectRevert(abi.encodeWithSelector(Deposit.NotTransferred.selector, address(odd)));
        factory.sweepOne(one(0, address(odd))[0]);
    }

    function testFuzz_Limited(uint64 amount, uint64 limit) public {
        LimitedToken limited = new LimitedToken(address(this));
        uint256 held = within(amount, 1, 1e12);
        address at = factory.depositAddress(MERCHANT, 0);
        limited.transfer(at, held);
        uint256 most = within(limit, held / 1000 + 1, held);
        limited.setLimit(most);
        uint256 calls = 0;
        for (uint256 left = held; left > 0; ++calls) {
            uint256 moved = factory.sweepOne{gas: 500_000}(one(0, address(limited))[0]);
            require(moved > 0 && moved <= left, "a sweep moved nothing");
            left -= moved;
            eq(limited.balanceOf(at), left, "what is left");
        }
        eq(limited.balanceOf(MERCHANT), held, "what the merchant has");
        require(calls < 1000, "it takes many calls");
    }

    function test_LimitedToOne() public {
        LimitedToken limited = new LimitedToken(address(this));
        for (uint256 held = 1; held < 8; ++held) {
            limited.setLimit(held);
            limited.transfer(factory.depositAddress(MERCHANT, bytes32(held)), held);
            limited.setLimit(1);
            eq(factory.sweepOne(one(bytes32(held), address(limited))[0]), held, "it was not moved in parts of 1");
        }
    }

    /// Part of a limited token is moved with the gas that every sweep has.
    function test_LimitedWithLittleGas() public {
        LimitedToken limited = new LimitedToken(address(this));
        limited.transfer(factory.depositAddress(MERCHANT, 0), 1000);
        factory.sweepOne(one(0, address(token))[0]);
        limited.setLimit(20);
        (bool ok,) = address(factory).call{gas: 160_000}(abi.encodeCall(factory.sweepOne, (one(0, address(limited))[0])));
        require(ok, "nothing was moved");
        uint256 left = limited.balanceOf(factory.depositAddress(MERCHANT, 0));
        require(left > 0 && left < 1000, "it was not moved in part");
    }

    /// A deposit that burns gas uses no more than its cap, and the following ones are swept.
    function test_GasOfASweepIsCapped() public {
        Sweep[] memory all = new Sweep[](5);
        for (uint256 i = 0; i < 5; ++i) {
            bool burner = i % 2 == 0;
            all[i] = Sweep(MERCHANT, bytes32(i), burner ? address(odd) : address(token));
            address at = factory.depositAddress(MERCHANT, bytes32(i));
            odd.mint(at, 5);
            token.mint(at, 5);
        }
        odd.burnGas(true);
        uint256 before = gasleft();
        factory.sweep{gas: 10_000_000}(all);
        require(before - gasleft() < 3 * 500_000 + 2 * 150_000 + 60_000, "a sweep is not capped");
        eq(token.balanceOf(MERCHANT), 10, "honest deposits were not swept");
        // With exactly the gas that the factory requires, the last one is swept, too.
        all[1].id = bytes32(uint256(11));
        all[3].id = bytes32(uint256(13));
        token.mint(factory.depositAddress(MERCHANT, all[1].id), 5);
        token.mint(factory.depositAddress(MERCHANT, all[3].id), 5);
        factory.sweep{gas: 5 * 80_000 + 60_000 + 15_000}(all);
        eq(token.balanceOf(MERCHANT), 20, "honest deposits were not swept with little gas");
        vm.expectRevert(abi.encodeWithSelector(DepositFactory.NotEnoughGas.selector, uint256(460_000)));
        factory.sweep{gas: 460_000}(all);
    }
}

/// @notice Pays deposits in two tokens and the coin, and sweeps them, in any order.
contract DepositHandler is Base {
    DepositFactory public factory = new DepositFactory();
    LimitedToken public limited;
    uint256 public constant DEPOSITS = 4;
    mapping(uint256 deposit => uint256) public received;
    mapping(uint256 deposit => uint256) public swept;
    mapping(uint256 deposit => uint256) public coins;

    constructor() {
        limited = new LimitedToken(address(this));
    }

    function at(uint256 n) public view returns (address) {
        return factory.depositAddress(merchant(n), bytes32(n));
    }

    function merchant(uint256 n) public pure returns (address) {
        return address(uint160(0xC000 + n % 2));
    }

    function pay(uint256 n, uint32 amount) external {
        n %= DEPOSITS;
        limited.setLimit(1e12);
        if (limited.transfer(at(n), amount)) received[n] += amount;
    }

    function payCoin(uint256 n, uint32 amount) external {
        n %= DEPOSITS;
        vm.deal(at(n), at(n).balance + amount);
        coins[n] += amount;
    }

    function sweep(uint256 n, uint32 limit) external {
        n %= DEPOSITS;
        limited.setLimit(limit);
        try factory.sweepOne{gas: 500_000}(Sweep(merchant(n), bytes32(n), address(limited))) returns (uint256 amount) {
            swept[n] += amount;
        } catch {}
    }

    function sweepCoin(uint256 n) external {
        n %= DEPOSITS;
        factory.sweepOne(Sweep(merchant(n), bytes32(n), address(0)));
    }
}

contract DepositInvariants is Base {
    DepositHandler private handler;

    function setUp() public {
        handler = new DepositHandler();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariant_SweptAndHeldIsReceived() public view {
        uint256[2] memory merchants;
        uint256[2] memory coins;
        for (uint256 n = 0; n < handler.DEPOSITS(); ++n) {
            uint256 held = handler.limited().balanceOf(handler.at(n));
            require(handler.swept(n) + held == handler.received(n), "swept and held is not what was received");
            merchants[n % 2] += handler.swept(n);
            coins[n % 2] += handler.coins(n) - handler.at(n).balance;
        }
        for (uint256 n = 0; n < 2; ++n) {
            require(handler.limited().balanceOf(handler.merchant(n)) == merchants[n], "a merchant has another amount");
            require(handler.merchant(n).balance == coins[n], "a merchant has other coins");
        }
    }
}
